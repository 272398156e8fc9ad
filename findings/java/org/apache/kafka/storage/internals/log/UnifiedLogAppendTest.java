package org.apache.kafka.storage.internals.log;

import findings.TestLog;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Appends of several batches, and transactions that began before the log start. */
public class UnifiedLogAppendTest {
    private static final long T = 1_700_000_000_000L;

    @TempDir
    File parent;
    private File dir;

    @BeforeEach
    public void setUp() {
        dir = new File(parent, "t-0");
        assertTrue(dir.mkdir());
    }

    @Test
    public void testFollowerAppendsMoreBatchesThanIndexHasRoomFor() throws Throwable {
        // Room for 5 offset entries and 3 time entries; each fetch brings 4 batches.
        Map<String, String> config = Map.of("index.interval.bytes", "1", "segment.index.bytes", "40");
        try (TestLog log = TestLog.open(dir, config)) {
            for (int fetch = 0; fetch < 4; fetch++) {
                long first = 4L * fetch;
                assertDoesNotThrow(() -> log.appendAsFollower(first, T + first, T + first + 1, T + first + 2, T + first + 3),
                    "the follower marks the partition as failed");
                assertEquals(first + 4, log.logEndOffset());
            }
        }
    }

    @Test
    public void testLastStableOffsetIsNotBeforeLogStartOffset() throws Throwable {
        try (TestLog log = TestLog.open(dir, Map.of())) {
            log.appendTransactional(7, 0, T, T + 1, T + 2, T + 3);  // one batch, offsets 0 to 3, left open
            log.deleteRecordsBefore(2);
            assertEquals(2, log.logStartOffset());
            assertEquals(2, log.lastStableOffset());
        }
    }
}
