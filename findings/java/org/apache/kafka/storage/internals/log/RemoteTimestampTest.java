package org.apache.kafka.storage.internals.log;

import findings.TestLog;
import findings.TestTier;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.nio.file.Files;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** What a log with remote segments finds for a timestamp. */
public class RemoteTimestampTest {
    private static final long T = 1_700_000_000_000L;

    @TempDir
    File parent;

    @Test
    public void testRemoteLookupByTimestampContinuesAfterDeletedRecords() throws Throwable {
        File remote = directory("remote/t-0");
        File local = directory("local/t-0");
        try (TestLog all = TestLog.open(remote, Map.of()); TestLog rest = TestLog.openAt(local, Map.of(), 4)) {
            all.append(T + 100);  // offset 0, deleted below
            all.append(T);        // offset 1
            all.roll();
            all.append(T + 50);   // offset 2
            all.append(T + 60);   // offset 3
            all.roll();
            rest.append(T + 70);  // offset 4
            try (TestTier tier = new TestTier(directory("cache"), remote, all, rest)) {
                tier.add(0, 1, T + 100);
                tier.add(2, 3, T + 60);
                assertEquals(0, tier.offsetForTimestamp(T + 50, 0), "before the deletion");
                assertEquals(2, tier.offsetForTimestamp(T + 50, 1), "offset 2 has this very timestamp");
            }
        }
    }

    @Test
    public void testMaxTimestampConsidersRemoteSegments() throws Throwable {
        assertEquals(0, offsetOfMaxTimestamp(T + 70), "offset 0 has the largest timestamp");
    }

    @Test
    public void testMaxTimestampOfLogWhoseRecordsAreAllRemote() throws Throwable {
        assertEquals(0, offsetOfMaxTimestamp(), "offset 0 has the largest timestamp");
    }

    /** Timestamps T + 100 and T are remote only; the local log begins at offset 2. */
    private long offsetOfMaxTimestamp(long... localTimestamps) throws Throwable {
        File remote = directory("remote/t-0");
        File local = directory("local/t-0");
        Map<String, String> tiered = Map.of("remote.storage.enable", "true");
        TestLog.openAt(local, tiered, 2).close();
        Files.writeString(new File(local, "leader-epoch-checkpoint").toPath(), "0\n1\n0 0\n");  // of both tiers
        try (TestLog all = TestLog.open(remote, Map.of()); TestLog rest = TestLog.open(local, tiered)) {
            all.append(T + 100);
            all.append(T);
            for (long timestamp : localTimestamps)
                rest.append(timestamp);
            try (TestTier tier = new TestTier(directory("cache"), remote, all, rest)) {
                tier.add(0, 1, T + 100);
                return tier.offsetOfMaxTimestamp(rest);
            }
        }
    }

    private File directory(String name) {
        File made = new File(parent, name);
        assertTrue(made.mkdirs());
        return made;
    }
}
