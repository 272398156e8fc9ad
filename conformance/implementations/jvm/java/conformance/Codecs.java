package conformance;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Compresses and decompresses as a release does, with the libraries that it comes with. */
public final class Codecs {
    private static final int ROOM = 512;

    // The order of kidx/records/codecs/codec.py.
    private static final int END = 0;
    private static final int DAMAGE = 1;
    private static final int REFUSAL = 2;
    private static final int FAILURE = 3;

    private final Constructor<?> newBuffer;
    private final Method written;
    private final Method typeOf;
    private final Method compressionOf;
    private final Method build;
    private final Method wrap;
    private final Method open;
    private final Object buffers;

    public Codecs(ClassLoader loader) throws ReflectiveOperationException {
        Class<?> streamType = Members.type(loader, "org.apache.kafka.common.utils.internals.ByteBufferOutputStream",
            "org.apache.kafka.common.utils.ByteBufferOutputStream");
        newBuffer = streamType.getConstructor(int.class);
        written = streamType.getMethod("buffer");
        Class<?> type = Members.type(loader, "org.apache.kafka.common.record.internal.CompressionType",
            "org.apache.kafka.common.record.CompressionType");
        typeOf = Members.method(type, "forId", 1);
        Class<?> compression = Members.type(loader, "org.apache.kafka.common.compress.Compression", type.getName());
        boolean apart = compression != type; // since 3.8
        compressionOf = apart ? compression.getMethod("of", type) : null;
        build = apart ? Members.method(compressionOf.getReturnType(), "build", 0) : null;
        wrap = Members.method(compression, "wrapForOutput", 2);
        open = Members.method(compression, "wrapForInput", 3);
        buffers = open.getParameterTypes()[2].getField("NO_CACHING").get(null);
    }

    private Object compression(int codec) throws Throwable {
        Object type = Members.call(typeOf, null, codec);
        return compressionOf == null ? type : Members.call(build, Members.call(compressionOf, null, type));
    }

    /** Bytes as this release compresses them in a batch that it builds anew. */
    public byte[] compress(int codec, byte[] data, int magic) throws Throwable {
        Object buffer = newBuffer.newInstance(ROOM);
        OutputStream compressed = (OutputStream) Members.call(wrap, compression(codec), buffer, (byte) magic);
        try (DataOutputStream stream = new DataOutputStream(compressed)) {
            stream.write(data);
        }
        ByteBuffer content = (ByteBuffer) Members.call(written, buffer);
        byte[] bytes = new byte[content.flip().remaining()];
        content.get(bytes);
        return bytes;
    }

    /**
     * How reading the bytes of a batch ends, how many come before, these, and the text of a failure.
     *
     * Null if there are more than that many bytes, or no memory for them.
     */
    public byte[] decompress(int codec, byte[] data, int magic, boolean byRecord, int most) throws Throwable {
        ByteArrayOutputStream plain = new ByteArrayOutputStream();
        Object compression = compression(codec);
        try (InputStream stream = opened(compression, data, (byte) magic)) {
            if (stream == null)
                return found(REFUSAL, plain, "");
            return read(stream, plain, byRecord && magic >= 2, most) ? found(END, plain, "") : null;
        } catch (IOException damage) {
            return found(DAMAGE, plain, "");
        } catch (OutOfMemoryError tooMuch) {
            return null;
        } catch (RuntimeException | Error failure) {
            return found(FAILURE, plain, String.valueOf(failure.getMessage()));
        }
    }

    private InputStream opened(Object compression, byte[] data, byte magic) throws Throwable {
        try {
            return (InputStream) Members.call(open, compression, ByteBuffer.wrap(data), magic, buffers);
        } catch (RuntimeException refusal) {
            return null;
        }
    }

    /**
     * Reads one byte after another, or as records are read, each at once behind its size: where that meets damage,
     * what comes before it in the record is lost, and up to 2.7 nothing buffers between the library and who asks it.
     */
    private static boolean read(InputStream stream, ByteArrayOutputStream plain, boolean byRecord, int most)
        throws IOException {
        byte[] body = new byte[0];
        int size = 0;
        int bits = 0;
        for (int each = stream.read(); each >= 0; each = stream.read()) {
            plain.write(each);
            if (plain.size() > most)
                return false;
            if (!byRecord)
                continue;
            size |= (each & 0x7f) << bits;
            bits += 7;
            if (each >= 0x80 && bits < 35)
                continue;
            int left = (size >>> 1) ^ -(size & 1);
            size = bits = 0;
            left = Math.min(left, most + 1 - plain.size());
            if (left > body.length)
                body = new byte[left];
            while (left > 0) {
                int count = stream.read(body, 0, left);
                if (count < 0)
                    return true;
                plain.write(body, 0, count);
                left -= count;
            }
            if (plain.size() > most)
                return false;
        }
        return true;
    }

    private static byte[] found(int ending, ByteArrayOutputStream plain, String text) {
        byte[] words = text.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(1 + Integer.BYTES + plain.size() + words.length)
            .put((byte) ending).putInt(plain.size()).put(plain.toByteArray()).put(words).array();
    }
}
