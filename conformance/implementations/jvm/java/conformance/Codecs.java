package conformance;

import java.io.DataOutputStream;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;

/** Compresses as a release does when it builds a batch anew, with the libraries that it comes with. */
final class Codecs {
    private static final int ROOM = 512;

    private final Constructor<?> newBuffer;
    private final Method written;
    private final Method typeOf;
    private final Method compressionOf;
    private final Method build;
    private final Method wrap;

    Codecs(ClassLoader loader) throws ReflectiveOperationException {
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
    }

    byte[] compress(int codec, byte[] data, byte magic) throws Throwable {
        Object compression = Members.call(typeOf, null, codec);
        if (compressionOf != null)
            compression = Members.call(build, Members.call(compressionOf, null, compression));
        Object buffer = newBuffer.newInstance(ROOM);
        OutputStream compressed = (OutputStream) Members.call(wrap, compression, buffer, magic);
        try (DataOutputStream stream = new DataOutputStream(compressed)) {
            stream.write(data);
        }
        ByteBuffer content = (ByteBuffer) Members.call(written, buffer);
        byte[] bytes = new byte[content.flip().remaining()];
        content.get(bytes);
        return bytes;
    }
}
