package conformance;

/** The segments of many releases; the methods are those of {@link SegmentDriver}. */
public final class SegmentFleet extends Fleet<SegmentDriver> {
    public void open(long baseOffset, int indexInterval, int indexSize, long jitterMs, boolean exists, int initFileSize,
                     boolean preallocate, String suffix, long nowMs) {
        start(driver -> driver.open(baseOffset, indexInterval, indexSize, jitterMs, exists, initFileSize, preallocate,
            suffix, nowMs));
    }

    public void append(byte[] records, long largestOffset, long largestTimestamp, long shallowOffset) {
        start(driver -> driver.append(records.clone(), largestOffset, largestTimestamp, shallowOffset));
    }

    public void appendFromFile(byte[] records, int position) {
        start(driver -> driver.appendFromFile(records, position));
    }

    public void shouldRoll(long maxMs, int maxBytes, long timestamp, long offset, int size, long nowMs) {
        start(driver -> driver.shouldRoll(maxMs, maxBytes, timestamp, offset, size, nowMs));
    }

    public void updateTxnIndex(long producerId, long first, long last, boolean aborted, long stable) {
        start(driver -> driver.updateTxnIndex(producerId, first, last, aborted, stable));
    }

    public void rename(String oldSuffix, String newSuffix) {
        start(driver -> driver.rename(oldSuffix, newSuffix));
    }

    public void perform(int operation, long a, long b, long c, long d) {
        start(driver -> driver.perform(operation, a, b, c, d));
    }
}
