package conformance;

import java.util.ArrayList;
import java.util.List;

/** The drivers of many releases, each performing the same operation, within one crossing from Python. */
public final class IndexFleet {
    private final List<IndexDriver> drivers = new ArrayList<>();

    public void add(IndexDriver driver) {
        drivers.add(driver);
    }

    public void open(int kind, String path, long baseOffset, int maxIndexSize, boolean writable) {
        for (IndexDriver driver : drivers)
            driver.open(kind, path, baseOffset, maxIndexSize, writable);
    }

    public void rename(String path) {
        for (IndexDriver driver : drivers)
            driver.rename(path);
    }

    public void perform(int operation, long a, long b, long c, long d, long e) {
        for (IndexDriver driver : drivers)
            driver.perform(operation, a, b, c, d, e);
    }
}
