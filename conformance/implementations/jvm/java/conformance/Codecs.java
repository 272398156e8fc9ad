package conformance;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Compression and decompression with one release's classes and libraries. */
public final class Codecs {
    private static final int ROOM = 512;
    private static final int ENDED = -1;

    // The order of kidx/records/codecs/codec.py.
    private static final int END = 0;
    private static final int CORRUPT = 1;
    private static final int REJECTED = 2;
    private static final int FAILURE = 3;
    private static final int UNDERFLOW = 4;

    private static final int LZ4 = 3;
    private static final int PIECE = 1 << 16;

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
        boolean hasCompressionClass = compression != type; // since 3.8
        compressionOf = hasCompressionClass ? compression.getMethod("of", type) : null;
        build = hasCompressionClass ? Members.method(compressionOf.getReturnType(), "build", 0) : null;
        wrap = Members.method(compression, "wrapForOutput", 2);
        open = Members.method(compression, "wrapForInput", 3);
        buffers = open.getParameterTypes()[2].getField("NO_CACHING").get(null);
    }

    private Object compression(int codec) throws Throwable {
        Object type = Members.call(typeOf, null, codec);
        return compressionOf == null ? type : Members.call(build, Members.call(compressionOf, null, type));
    }

    /** Compresses bytes as this release does in a batch that it rebuilds. */
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
     * Decompresses the records of a batch. The result has the way in which reading ended, the number of decompressed
     * bytes, the number of blocks and their sizes, the bytes, and the text of a failure. The sizes of blocks are omitted
     * unless a block is empty.
     *
     * Returns null if there are more bytes than {@code most}, or no memory for them.
     */
    public byte[] decompress(int codec, byte[] data, int magic, boolean byRecord, int most) throws Throwable {
        Plain plain = new Plain();
        Object compression = compression(codec);
        try (InputStream stream = opened(compression, data, (byte) magic)) {
            if (stream == null)
                return found(REJECTED, plain, "");
            boolean ended = inBlocks(stream, codec, magic) ? blocks(stream, plain, most)
                : read(stream, plain, magic, byRecord, most);
            return ended ? found(END, plain, "") : null;
        } catch (IOException corruption) {
            return found(CORRUPT, plain, "");
        } catch (BufferUnderflowException underflow) {
            return found(UNDERFLOW, plain, "");
        } catch (OutOfMemoryError tooMuch) {
            return null;
        } catch (RuntimeException | Error failure) {
            return found(FAILURE, plain, String.valueOf(failure.getMessage()));
        }
    }

    private InputStream opened(Object compression, byte[] data, byte magic) throws Throwable {
        try {
            return (InputStream) Members.call(open, compression, ByteBuffer.wrap(data), magic, buffers);
        } catch (RuntimeException failure) {
            return null;
        }
    }

    /** Returns true if each empty lz4 block ends the stream once: since 3.6, because Kafka buffers the stream itself. */
    private static boolean inBlocks(InputStream stream, int codec, int magic) {
        return codec == LZ4 && magic >= 2 && stream.getClass().getSimpleName().equals("ChunkedBytesStream");
    }

    /** Reads block by block, without Kafka's buffer. */
    private static boolean blocks(InputStream stream, Plain plain, int most) throws IOException {
        byte[] piece = new byte[PIECE];
        while (plain.size() <= most) {
            int count = stream.read(piece, 0, PIECE);
            if (count < 0)
                return true;
            plain.write(piece, 0, count);
            if (stream.available() == 0)
                plain.endBlock();
        }
        return false;
    }

    /**
     * Reads in the sizes in which Kafka reads records. How many bytes are returned before a corruption depends on the size
     * of each read, and up to 2.7 Kafka does not buffer the stream.
     */
    private static boolean read(InputStream stream, ByteArrayOutputStream plain, int magic, boolean byRecord, int most)
        throws IOException {
        byte[] piece = new byte[Long.BYTES];
        while (plain.size() <= most) {
            int size = magic < 2 ? sizeOfMessage(stream, plain, piece)
                : byRecord ? sizeOfRecord(stream, plain) : one(stream, plain);
            if (size == ENDED)
                return true;
            int left = Math.min(size, most + 1 - plain.size());
            if (left > piece.length)
                piece = new byte[left];
            if (!taken(stream, plain, piece, left))
                return true;
        }
        return false;
    }

    /** Reads exactly one byte. */
    private static int one(InputStream stream, ByteArrayOutputStream plain) throws IOException {
        int each = stream.read();
        if (each < 0)
            return ENDED;
        plain.write(each);
        return 0;
    }

    private static boolean taken(InputStream stream, ByteArrayOutputStream plain, byte[] piece, int size)
        throws IOException {
        for (int left = size; left > 0;) {
            int count = stream.read(piece, 0, left);
            if (count < 0)
                return false;
            plain.write(piece, 0, count);
            left -= count;
        }
        return true;
    }

    /** Reads the varint before a record of v2. */
    private static int sizeOfRecord(InputStream stream, ByteArrayOutputStream plain) throws IOException {
        int size = 0;
        for (int bits = 0; bits < 35; bits += 7) {
            int each = stream.read();
            if (each < 0)
                return ENDED;
            plain.write(each);
            size |= (each & 0x7f) << bits;
            if (each < 0x80)
                break;
        }
        return Math.max(0, (size >>> 1) ^ -(size & 1));
    }

    /** Reads the offset and size before a message of v0 or v1; DataInputStream reads the offset in one call. */
    private static int sizeOfMessage(InputStream stream, ByteArrayOutputStream plain, byte[] piece)
        throws IOException {
        if (!taken(stream, plain, piece, Long.BYTES))
            return ENDED;
        int size = 0;
        for (int i = 0; i < Integer.BYTES; i++) {
            int each = stream.read();
            if (each < 0)
                return ENDED;
            plain.write(each);
            size = size << 8 | each;
        }
        return Math.max(0, size);
    }

    private static byte[] found(int ending, Plain plain, String text) {
        byte[] words = text.getBytes(StandardCharsets.UTF_8);
        List<Integer> blocks = plain.blocks.contains(0) ? plain.blocks : List.of();
        ByteBuffer found = ByteBuffer.allocate(1 + Integer.BYTES * (2 + blocks.size()) + plain.size() + words.length);
        found.put((byte) ending).putInt(plain.size()).putInt(blocks.size());
        blocks.forEach(found::putInt);
        return found.put(plain.toByteArray()).put(words).array();
    }

    /** Decompressed bytes, with the sizes of their blocks. */
    private static final class Plain extends ByteArrayOutputStream {
        private final List<Integer> blocks = new ArrayList<>();
        private int start;

        void endBlock() {
            blocks.add(count - start);
            start = count;
        }
    }
}
