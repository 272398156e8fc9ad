package conformance;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;

/**
 * A thread that executes independent tasks together with the thread that waits for them.
 *
 * <p>If there is no second processor, or the helper wakes up late, the waiting thread executes all tasks of a round.
 */
final class Helper extends Thread {
    /** Number of tasks whose execution takes as long as waking the helper. */
    private static final int FEW = 4;

    private static final Helper HELPER = new Helper();

    private volatile Round posted;

    static {
        HELPER.start();
    }

    private Helper() {
        super("conformance-helper");
        setDaemon(true);
    }

    /** Starts a round of short tasks, which has ended when its {@code finish} returns. */
    static Round post(int tasks, IntConsumer task) {
        return post(tasks, tasks > FEW, task);
    }

    /** Starts a round; {@code worthIt}: true if the tasks take longer than waking the helper. */
    static Round post(int tasks, boolean worthIt, IntConsumer task) {
        Round round = new Round(tasks, task);
        if (worthIt) {
            HELPER.posted = round;
            LockSupport.unpark(HELPER);
        }
        return round;
    }

    @Override
    public void run() {
        Round last = null;
        while (true) {
            Round round = posted;
            if (round == last) {
                LockSupport.park(this);
                continue;
            }
            last = round;
            round.takePart();
        }
    }

    /** Tasks 0 … n - 1, each executed once, by the first free thread. */
    static final class Round {
        /** Number of polls before finish() sleeps, about half a millisecond: waking a thread takes as long as a short round. */
        private static final int SPINS = 20_000;

        private final int tasks;
        private final IntConsumer task;
        private final AtomicInteger begun = new AtomicInteger();
        private final AtomicInteger done = new AtomicInteger();
        private volatile Thread waiting;

        private Round(int tasks, IntConsumer task) {
            this.tasks = tasks;
            this.task = task;
        }

        private void takePart() {
            for (int number = begun.getAndIncrement(); number < tasks; number = begun.getAndIncrement()) {
                try {
                    task.accept(number);
                } finally {
                    if (done.incrementAndGet() == tasks && waiting != null)
                        LockSupport.unpark(waiting);
                }
            }
        }

        /** Executes tasks until none is left, then waits for those that the helper has begun. */
        void finish() {
            takePart();
            for (int spins = 0; done.get() < tasks && spins < SPINS; spins++)
                Thread.onSpinWait();
            if (done.get() == tasks)
                return;
            waiting = Thread.currentThread();
            while (done.get() < tasks)
                LockSupport.park(this);
        }
    }
}
