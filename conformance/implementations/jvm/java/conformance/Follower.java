package conformance;

import java.io.IOException;

/**
 * One release that executes the steps of batches, and stops after the first that differs. Its reply and its files are
 * then in the state after that step, for the harness to read.
 */
final class Follower {
    private static final int NOWHERE = -1;

    private final Driver driver;
    private final Operations operations;
    private final int rules;
    private final WatchedFiles files;
    private Script script;
    private int steps;
    private boolean stopped;
    private Throwable failure;
    /** The step in progress, or the next one; other threads may read it. */
    private volatile int step;

    /** rules: the number of its set of rules. */
    Follower(Driver driver, int rules) {
        this.driver = driver;
        operations = driver.operations();
        this.rules = rules;
        files = new WatchedFiles(driver);
    }

    /** Starts an example in an empty directory; a limited number of its files may remain open. */
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

    /** Executes the rest of the batch. */
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

    /** Returns the number of the step in progress, or the number of steps if it has executed or skipped all. */
    int executing() {
        return stopped ? steps : step;
    }

    /** Returns true if it has stopped in the batch. Throws a failure to execute the batch at all, which is a bug. */
    boolean hasStopped() {
        if (failure != null)
            throw new IllegalStateException("step " + step + " of a batch cannot be executed", failure);
        return stoppedAt() != NOWHERE;
    }

    /** Returns the step after which it has stopped, or -1. */
    int stoppedAt() {
        return stopped ? step - 1 : NOWHERE;
    }

    /** Continues after the step that has stopped it: the harness has accepted its observation. */
    void resume() {
        stopped = false;
        files.doubt();
        follow();
        hasStopped();
    }

    private boolean isAsExpected(Script.Step next) {
        Steps.Request request = next.request();
        Script.Expectation expected = next.expectations()[rules];
        try {
            switch (request.operation()) {
                case Steps.WRITE:
                    files.write(request.text(), script.bytes, expected.replyAt(), expected.replyLength());
                    files.doubt();
                    return true;
                case Steps.LIST:
                    return files.areListed(script.bytes, expected.replyAt(), expected.replyLength());
                default:
                    if (operations.mayReplaceFiles(request.operation()))
                        files.doubt();
                    driver.execute(operations.name(request.operation()), request.arguments(), request.ownBytes());
                    return driver.replied(script.bytes, expected.replyAt(), expected.replyLength())
                        && files.hold(script.bytes, expected.files());
            }
        } catch (IOException unreadable) {
            return false;
        }
    }
}
