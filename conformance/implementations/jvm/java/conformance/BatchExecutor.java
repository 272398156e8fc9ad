package conformance;

import java.io.IOException;

/**
 * Executor of batches with one release's classes. It stops after the first step with an unexpected result; the harness can
 * then read the reply and the files of that step.
 */
final class BatchExecutor {
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

    /** rules: the number of the set of rules whose results are expected. */
    BatchExecutor(Driver driver, int rules) {
        this.driver = driver;
        operations = driver.operations();
        this.rules = rules;
        files = new WatchedFiles(driver);
    }

    /** Starts an example in an empty directory; at most {@code openFiles} of its files remain open. */
    void begin(int openFiles) {
        stopped = false;
        files.release();
        files.keep(openFiles);
    }

    /** Sets the next batch to execute. */
    void take(Script script, int steps) {
        this.script = script;
        this.steps = steps;
        step = 0;
        files.markReplaced();
    }

    /** Executes the rest of the batch. */
    void executeRest() {
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

    /** Returns true if the batch has stopped at a step. Throws if the batch could not be executed, which is a bug. */
    boolean hasStopped() {
        if (failure != null)
            throw new IllegalStateException("step " + step + " of a batch cannot be executed", failure);
        return stoppedAt() != NOWHERE;
    }

    /** Returns the step after which the batch has stopped, or -1. */
    int stoppedAt() {
        return stopped ? step - 1 : NOWHERE;
    }

    /** Continues after the step that has stopped the batch, because the harness has accepted its result. */
    void resume() {
        stopped = false;
        files.markReplaced();
        executeRest();
        hasStopped();
    }

    private boolean isAsExpected(Script.Step next) {
        Steps.Request request = next.request();
        Script.Expectation expected = next.expectations()[rules];
        try {
            switch (request.operation()) {
                case Steps.WRITE:
                    files.write(request.text(), script.bytes, expected.replyAt(), expected.replyLength());
                    files.markReplaced();
                    return true;
                case Steps.LIST:
                    return files.areListed(script.bytes, expected.replyAt(), expected.replyLength());
                default:
                    if (operations.mayReplaceFiles(request.operation()))
                        files.markReplaced();
                    driver.execute(operations.name(request.operation()), request.arguments(), request.ownBytes());
                    return driver.replied(script.bytes, expected.replyAt(), expected.replyLength())
                        && files.hold(script.bytes, expected.files());
            }
        } catch (IOException unreadable) {
            return false;
        }
    }
}
