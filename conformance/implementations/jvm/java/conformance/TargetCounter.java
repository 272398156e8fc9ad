package conformance;

import java.io.File;

/** The counter with the planted race. */
final class TargetCounter extends Target {
    private final Class<?> type;
    private Object counter;

    TargetCounter(ClassLoader loader) {
        type = Members.type(loader, "conformance.Racy");
    }

    @Override
    void open(File directory) throws Throwable {
        counter = Members.create(Members.constructor(type, 0));
    }

    @Override
    Object execute(String[] words) throws Throwable {
        return call(type, counter, words);
    }

    @Override
    String[] probes() {
        return new String[] {"value"};
    }

    @Override
    void close() { }
}
