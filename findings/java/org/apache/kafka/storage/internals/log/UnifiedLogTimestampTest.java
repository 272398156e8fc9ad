package org.apache.kafka.storage.internals.log;

import findings.TestLog;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** What ListOffsets answers for a timestamp when the first candidate is not the answer. */
public class UnifiedLogTimestampTest {
    private static final long T = 1_700_000_000_000L;
    private static final long MAX_TIMESTAMP = -3L;
    private static final Map<String, String> CONFIG = Map.of("index.interval.bytes", "1");

    @TempDir
    File parent;
    private File dir;

    @BeforeEach
    public void setUp() {
        dir = new File(parent, "t-0");
        assertTrue(dir.mkdir());
    }

    @Test
    public void testLookupByTimestampContinuesAfterDeletedRecords() throws Throwable {
        try (TestLog log = TestLog.open(dir, CONFIG)) {
            log.append(T + 100);  // offset 0, deleted below
            log.append(T);        // offset 1
            log.roll();
            log.append(T + 50);   // offset 2
            log.append(T + 60);   // offset 3
            log.deleteRecordsBefore(1);
            assertEquals(2, log.offsetForTimestamp(T + 50), "offset 2 has this very timestamp");
        }
    }

    @Test
    public void testLookupByTimestampContinuesAfterRecordsWithoutTimestamp() throws Throwable {
        try (TestLog log = TestLog.open(dir, CONFIG)) {
            log.append(-1);       // offset 0: no timestamp
            log.roll();
            log.append(T + 50);   // offset 1
            assertEquals(1, log.offsetForTimestamp(T), "offset 1 is the first record from this time on");
        }
    }

    @Test
    public void testMaxTimestampIsNotThatOfDeletedRecord() throws Throwable {
        try (TestLog log = TestLog.open(dir, CONFIG)) {
            log.append(T + 100);  // offset 0, deleted below
            log.append(T);        // offset 1
            log.deleteRecordsBefore(1);
            assertEquals(1, log.offsetForTimestamp(MAX_TIMESTAMP), "the log starts at 1");
        }
    }

    @Test
    public void testZeroedTimeIndexIsRebuiltAfterCleanShutdown() throws Throwable {
        writeTwoSegments();
        Path timeIndex = dir.toPath().resolve("00000000000000000000.timeindex");
        Files.write(timeIndex, new byte[(int) Files.size(timeIndex)]);
        assertFirstSegmentIsFoundByTimestamp();
    }

    @Test
    public void testCutTimeIndexIsRebuiltAfterCleanShutdown() throws Throwable {
        writeTwoSegments();
        Path timeIndex = dir.toPath().resolve("00000000000000000000.timeindex");
        Files.write(timeIndex, Arrays.copyOf(Files.readAllBytes(timeIndex), 12));
        assertFirstSegmentIsFoundByTimestamp();
    }

    @Test
    public void testLostTimeIndexIsRebuiltAfterCleanShutdown() throws Throwable {
        writeTwoSegments();
        Files.delete(dir.toPath().resolve("00000000000000000000.timeindex"));
        // Without an entry the broker falls back to the modification time of the file: here, of a restored one.
        assertTrue(dir.toPath().resolve("00000000000000000000.log").toFile().setLastModified(T - 1000));
        assertFirstSegmentIsFoundByTimestamp();
    }

    @Test
    public void testZeroedTimeIndexDoesNotMakeSegmentExpire() throws Throwable {
        long now = System.currentTimeMillis();
        try (TestLog log = TestLog.open(dir, CONFIG)) {
            for (int i = 0; i < 3; i++)
                log.append(now);
            log.roll();
            log.append(now);
        }
        Path timeIndex = dir.toPath().resolve("00000000000000000000.timeindex");
        Files.write(timeIndex, new byte[(int) Files.size(timeIndex)]);
        try (TestLog log = TestLog.open(dir, CONFIG)) {
            assertEquals(0, log.deleteOldSegments(), "retention.ms is a week, the records are new");
            assertEquals(0, log.logStartOffset());
        }
    }

    private void writeTwoSegments() throws Throwable {
        try (TestLog log = TestLog.open(dir, CONFIG)) {
            log.append(T);        // offset 0
            log.append(T + 1);    // offset 1
            log.append(T + 2);    // offset 2
            log.roll();
            log.append(T + 10);   // offset 3
        }
    }

    private void assertFirstSegmentIsFoundByTimestamp() throws Throwable {
        try (TestLog log = TestLog.open(dir, CONFIG)) {
            assertEquals(2, log.offsetForTimestamp(T + 2), "offset 2 has this very timestamp");
        }
    }
}
