package conformance;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;

/**
 * A thread that takes part in rounds of independent tasks.
 *
 * <p>The helper and the thread that waits for the round both take tasks. Where there is no second processor, or the
 * helper wakes up late, the waiting thread executes them all.
 */
final class Helper extends Thread {
    /** Cost of waking the helper, in tasks. */
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

    /** A round of short tasks that may begin immediately, and has ended when its {@code finish} returns. */
    static Round post(int tasks, IntConsumer task) {
        return post(tasks, tasks > FEW, task);
    }

    /** A round that may begin immediately, if that is worth waking the helper. */
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
        /** Half a millisecond or so: being woken up costs about as much as a short round lasts. */
        private static final int SPINS = 20_000;

        private final int tasks;
        private final IntConsumer task;
        private final AtomicInteger taken = new AtomicInteger();
        private final AtomicInteger done = new AtomicInteger();
        private volatile Thread waiting;

        private Round(int tasks, IntConsumer task) {
            this.tasks = tasks;
            this.task = task;
        }

        private void takePart() {
            for (int number = taken.getAndIncrement(); number < tasks; number = taken.getAndIncrement()) {
                try {
                    task.accept(number);
                } finally {
                    if (done.incrementAndGet() == tasks && waiting != null)
                        LockSupport.unpark(waiting);
                }
            }
        }

        /** Takes part, and returns when all tasks are done. */
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
