package conformance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Reader of steps, as {@code conformance/implementations/jvm/step_batch.py} writes them: for batches ({@link Script}) and
 * for cases ({@link Cases}). All values are native longs; bytes are padded with zeros to whole longs.
 *
 * <pre>
 *   request: operation, number of arguments, arguments, length of the bytes, bytes
 *   content: length, bytes
 * </pre>
 */
class Steps {
    // Operations of the harness; drivers execute all others.
    /** Writes a content to the file that the bytes name; NO_FILE removes the file. */
    static final int WRITE = 300;
    /** Compares the sorted names of all files. */
    static final int LIST = 301;
    /** Compares the file that the bytes name with a content. */
    static final int COMPARE = 302;

    static final int NO_FILE = -1;
    private static final byte[] NONE = {};

    final ByteBuffer bytes;
    int position;

    Steps(ByteBuffer bytes) {
        this.bytes = bytes.order(ByteOrder.nativeOrder());
    }

    /** Operation with its arguments. */
    record Request(int operation, long[] arguments, byte[] bytes) {
        /** Returns a copy for a driver, which may change it. */
        byte[] ownBytes() {
            return bytes.length == 0 ? bytes : bytes.clone();
        }

        String text() {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    /** Name of a file, with the position and length of its content; the length NO_FILE means that the file does not exist. */
    record Content(String name, int at, int length) {
        /** Returns true if both have the same name, and both files exist or both do not. */
        boolean isNamedAs(Content other) {
            return name.equals(other.name) && (length == NO_FILE) == (other.length == NO_FILE);
        }
    }

    final Request nextRequest() {
        int operation = nextInt();
        long[] arguments = new long[nextInt()];
        for (int i = 0; i < arguments.length; i++)
            arguments[i] = nextLong();
        return new Request(operation, arguments, nextBytes());
    }

    final byte[] nextBytes() {
        int length = nextInt();
        if (length == 0)
            return NONE;
        byte[] found = new byte[length];
        bytes.get(skip(length), found);
        return found;
    }

    /** Skips {@code length} bytes, padded to whole longs, and returns their position. */
    final int skip(int length) {
        int at = position;
        position += (Math.max(length, 0) + 7) & -8;
        return at;
    }

    final int nextInt() {
        return (int) nextLong();
    }

    private long nextLong() {
        long value = bytes.getLong(position);
        position += Long.BYTES;
        return value;
    }
}
