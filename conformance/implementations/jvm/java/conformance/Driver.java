package conformance;

import java.io.File;
import java.nio.ByteBuffer;

/** One release's classes: performs the operations of scripts, and says where its files are. */
public interface Driver {
    /** Works in a directory from now on; what is open is let go. */
    void begin(String directory);

    /** Lets go of what is open, as a killed process does. */
    void abandon();

    /** Performs the first step of a script without expectations; called from Python. */
    default void step(byte[] script) {
        Script.Step step = new Script(script, 0).step(0);
        perform(operations().name(step.operation()), step.arguments(), step.bytes());
    }

    /** What the numbers in scripts stand for. */
    Operations operations();

    /** Performs an operation; its outcome and the state after it are the reply. What bytes holds belongs to the callee. */
    void perform(String operation, long[] arguments, byte[] bytes);

    /** Executes an operation that changes nothing; the reply has no state, which takes longer to read than most results. */
    void ask(String operation, long[] arguments, byte[] bytes);

    /** Whether the last operation was answered with these bytes of a script. */
    boolean replied(ByteBuffer expected, int at, int length);

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
