package conformance;

import java.io.IOException;

/**
 * One release that performs the steps of scripts, and stops behind the first that comes out otherwise. Its reply and its
 * files then stay as that step has left them, for the harness to look at.
 */
final class Follower {
    // The harness's own steps, those of conformance/implementations/jvm/step_batch.py; the others are the drivers'.
    private static final int OVERWRITE = 200;
    private static final int LIST = 201;

    private static final int NOWHERE = -1;

    private final Driver driver;
    private final Operations operations;
    private final int rules;
    private final WatchedFiles files;
    private Script script;
    private int steps;
    private boolean stopped;
    private Throwable failure;
    /** The step that it performs or will perform next; other threads may ask. */
    private volatile int step;

    /** rules: the number of the set of rules it is held to. */
    Follower(Driver driver, int rules) {
        this.driver = driver;
        operations = driver.operations();
        this.rules = rules;
        files = new WatchedFiles(driver);
    }

    /** Starts an example in an empty directory; so many of its files may stay open. */
    void begin(int openFiles) {
        stopped = false;
        files.release();
        files.keep(openFiles);
    }

    /** What it will follow, from its first step on. */
    void take(Script script, int steps) {
        this.script = script;
        this.steps = steps;
        step = 0;
        files.doubt();
    }

    /** Performs what is left of the script. */
    void follow() {
        try {
            while (!stopped && step < steps) {
                stopped = !isAsExpected(script.step(step));
                step++;
            }
        } catch (Throwable thrown) {
            failure = thrown;
        }
    }

    /** The number of the step that it performs right now; that of steps if it has performed or left them all. */
    int performing() {
        return stopped ? steps : step;
    }

    /** Whether it has stopped in the script. Throws what has kept it from performing the script at all, which is a bug. */
    boolean hasStopped() {
        if (failure != null)
            throw new IllegalStateException("step " + step + " of a script cannot be performed", failure);
        return stoppedAt() != NOWHERE;
    }

    /** The step behind which it has stopped, or -1. */
    int stoppedAt() {
        return stopped ? step - 1 : NOWHERE;
    }

    /** Goes on after the step that has stopped it: the harness has accepted its observation. */
    void resume() {
        stopped = false;
        files.doubt();
        follow();
        hasStopped();
    }

    private boolean isAsExpected(Script.Step next) {
        Script.Expectation expected = next.expectations()[rules];
        try {
            switch (next.operation()) {
                case OVERWRITE:
                    files.overwrite(next.text(), script.bytes, expected.replyAt(), expected.replyLength());
                    return true;
                case LIST:
                    return files.areListed(script.bytes, expected.replyAt(), expected.replyLength());
                default:
                    if (operations.mayReplaceFiles(next.operation()))
                        files.doubt();
                    driver.perform(operations.name(next.operation()), next.arguments(), next.ownBytes());
                    return driver.replied(script.bytes, expected.replyAt(), expected.replyLength())
                        && files.hold(script.bytes, expected.files());
            }
        } catch (IOException unreadable) {
            return false;
        }
    }
}
