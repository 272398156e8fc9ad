package conformance;

import java.io.File;
import java.nio.ByteBuffer;

/** Driver of one release's classes: executes the operations of batches, and returns the place of its files. */
public interface Driver {
    /** Works in a directory from now on; releases everything that is open. */
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

    /** Executes an operation; its outcome and the state after it are the reply. The callee owns bytes. */
    void execute(String operation, long[] arguments, byte[] bytes);

    /** Executes an operation that changes nothing; the reply has no state, which takes longer to read than most results. */
    void ask(String operation, long[] arguments, byte[] bytes);

    /** Whether the last operation was answered with these bytes of a script. */
    boolean replied(ByteBuffer expected, int at, int length);

    /** Adds the reply to the last operation, which has that number, to a digest. */
    void addReply(Digest digest, int operation);

    /** A file of its directory; the directory itself for an empty path. */
    File file(String path);

    /** Whether every file is compared, not only those that a step names. */
    default boolean comparesAll() {
        return false;
    }

    /** Whether a file of that name is compared at all. */
    default boolean compares(String name) {
        return true;
    }
}
