package conformance;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;

/** The drivers of many releases, which perform the same operation while Python does something else. */
public abstract class Fleet<D> {
    // One processor is left to Python, which performs the operation on the references meanwhile.
    private static final int THREADS = Math.max(1, Runtime.getRuntime().availableProcessors() - 1);
    private static final ExecutorService WORKERS = Executors.newFixedThreadPool(THREADS, task -> {
        Thread thread = new Thread(task, "fleet");
        thread.setDaemon(true);
        return thread;
    });

    private final List<D> drivers = new ArrayList<>();
    private final List<Future<?>> underWay = new ArrayList<>();

    public final void add(D driver) {
        drivers.add(driver);
    }

    /** Lets everybody perform an operation, and returns at once. */
    final void start(Consumer<D> operation) {
        join();
        for (int first = 0; first < Math.min(THREADS, drivers.size()); first++) {
            int start = first;
            underWay.add(WORKERS.submit(() -> {
                for (int number = start; number < drivers.size(); number += THREADS)
                    operation.accept(drivers.get(number));
            }));
        }
    }

    /** Waits until everybody has performed it. */
    public final void join() {
        try {
            for (Future<?> some : underWay)
                some.get();
        } catch (ExecutionException | InterruptedException failure) {
            throw new IllegalStateException(failure);
        } finally {
            underWay.clear();
        }
    }
}
