package conformance;

import java.io.File;
import java.nio.ByteBuffer;

/** Driver of one release's classes: it executes operations, and gives access to the files that they write. */
public interface Driver {
    /** Starts an example in a directory, after releasing everything that is open. */
    void begin(String directory);

    /** Releases everything that is open, as a killed process does. */
    void abandon();

    /** Executes a request; called from Python. */
    default void step(byte[] bytes) {
        Steps.Request request = new Steps(ByteBuffer.wrap(bytes)).nextRequest();
        execute(operations().name(request.operation()), request.arguments(), request.bytes());
    }

    /** Returns the operations by their numbers in batches. */
    Operations operations();

    /** Executes an operation; the reply has its outcome and the state after it. The callee may change {@code bytes}. */
    void execute(String operation, long[] arguments, byte[] bytes);

    /** Executes a read-only operation; the reply has no state, because reading it takes longer than most operations. */
    void ask(String operation, long[] arguments, byte[] bytes);

    /** Returns true if the last reply equals these bytes of a script. */
    boolean replied(ByteBuffer expected, int at, int length);

    /** Adds the reply to the last operation to a digest; operation: its number. */
    void addReply(Digest digest, int operation);

    /** Returns a file in the driver's directory; the directory itself for an empty path. */
    File file(String path);

    /** Returns true if every file is compared, not only the files that a step names. */
    default boolean comparesAll() {
        return false;
    }

    /** Returns true if a file with that name is compared at all. */
    default boolean compares(String name) {
        return true;
    }
}
