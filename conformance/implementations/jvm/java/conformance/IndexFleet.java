package conformance;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * The drivers of many releases, each performing the same operation, within two crossings from Python.
 *
 * <p>A call only starts an operation: a {@link Helper} may begin with the drivers while Python is busy with its own
 * parties, and {@link #finish} does what is left.
 */
public final class IndexFleet {
    private final List<IndexDriver> drivers = new ArrayList<>();
    private Helper.Round round;

    public void add(IndexDriver driver) {
        drivers.add(driver);
    }

    public void open(int kind, String path, long baseOffset, int maxIndexSize, boolean writable) {
        start(driver -> driver.open(kind, path, baseOffset, maxIndexSize, writable));
    }

    public void rename(String path) {
        start(driver -> driver.rename(path));
    }

    public void perform(int operation, long a, long b, long c, long d, long e) {
        start(driver -> driver.perform(operation, a, b, c, d, e));
    }

    private void start(Consumer<IndexDriver> step) {
        round = Helper.post(drivers.size(), number -> step.accept(drivers.get(number)));
    }

    /** Returns when every driver has performed the operation that was started. */
    public void finish() {
        round.finish();
    }
}
