package conformance;

import java.util.ArrayList;
import java.util.List;

/**
 * Executors of one batch with the classes of many releases. A {@link Helper} thread may begin to execute the batch while
 * Python prepares the next one; {@link #finish} executes the rest.
 */
public final class BatchExecutors {
    /** Open files per release; most logs of an example have fewer files. */
    private static final int MANY = 64;

    private final int rules;
    private final int openFiles;
    private final List<BatchExecutor> executors = new ArrayList<>();
    private Helper.Round round;

    /** rules: the number of sets of rules. openFiles: the maximum number of open files of all releases together. */
    public BatchExecutors(int rules, int openFiles) {
        this.rules = rules;
        this.openFiles = openFiles;
    }

    public void add(Object driver, int rules) {
        executors.add(new BatchExecutor((Driver) driver, rules));
    }

    public void begin() {
        int each = Math.min(MANY, openFiles / Math.max(1, executors.size()));
        executors.forEach(executor -> executor.begin(each));
    }

    /**
     * Starts a batch; the previous one must have been finished. alone: true if Python waits for this batch, so that a
     * second thread would have no work.
     */
    public void start(byte[] bytes, int steps, boolean alone) {
        Script script = new Script(bytes, rules);
        for (BatchExecutor executor : executors)
            executor.take(script, steps);
        round = Helper.post(executors.size(), !alone || executors.size() > 1, number -> executors.get(number).executeRest());
    }

    /** Waits until every release has executed the batch or stopped; returns the number of stopped releases. */
    public int finish() {
        round.finish();
        return (int) executors.stream().filter(BatchExecutor::hasStopped).count();
    }

    /** Returns the step of the last batch that a release is executing; any thread may call it. */
    public int executing(int number) {
        return executors.get(number).executing();
    }

    /** Returns the step of the last batch after which a release has stopped, or -1. */
    public int stoppedAt(int number) {
        return executors.get(number).stoppedAt();
    }

    public void resume(int number) {
        executors.get(number).resume();
    }
}
