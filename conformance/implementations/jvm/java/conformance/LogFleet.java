package conformance;

import java.util.Map;

/** The logs of many releases; the methods are those of {@link LogDriver}. */
public final class LogFleet extends Fleet<LogDriver> {
    public void open(Map<String, String> settings, int segmentBytes, long start, long recoveryPoint, boolean clean,
                     long nowMs, int expirationMs) {
        start(driver -> driver.open(settings, segmentBytes, start, recoveryPoint, clean, nowMs, expirationMs));
    }

    public void appendAsLeader(byte[] records, int epoch, boolean fromClient) {
        start(driver -> driver.appendAsLeader(records.clone(), epoch, fromClient));
    }

    public void appendAsFollower(byte[] records, int epoch) {
        start(driver -> driver.appendAsFollower(records.clone(), epoch));
    }

    public void fetchOffsets(long[] targets) {
        start(driver -> driver.fetchOffsets(targets));
    }

    public void perform(int operation, long a, long b) {
        start(driver -> driver.perform(operation, a, b));
    }
}
