package conformance;

/** The indexes of many releases; the methods are those of {@link IndexDriver}. */
public final class IndexFleet extends Fleet<IndexDriver> {
    public void open(int kind, String path, long baseOffset, int maxIndexSize, boolean writable) {
        start(driver -> driver.open(kind, path, baseOffset, maxIndexSize, writable));
    }

    public void rename(String path) {
        start(driver -> driver.rename(path));
    }

    public void perform(int operation, long a, long b, long c, long d, long e) {
        start(driver -> driver.perform(operation, a, b, c, d, e));
    }
}
