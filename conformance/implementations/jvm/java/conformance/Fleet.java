package conformance;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * The drivers of many releases, which perform the same operation.
 *
 * <p>A call only starts an operation: a {@link Helper} may begin with the drivers while Python is busy with its own
 * parties, and {@link #finish} does what is left.
 */
public abstract class Fleet<D> {
    private final List<D> drivers = new ArrayList<>();
    private Helper.Round round;

    public final void add(D driver) {
        drivers.add(driver);
    }

    final void start(Consumer<D> operation) {
        round = Helper.post(drivers.size(), number -> operation.accept(drivers.get(number)));
    }

    /** Returns when every driver has performed the operation that was started. */
    public final void finish() {
        round.finish();
    }
}
