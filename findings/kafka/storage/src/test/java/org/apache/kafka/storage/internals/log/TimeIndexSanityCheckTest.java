package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.apache.kafka.test.TestUtils;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

/**
 * Clean shutdowns, after which the time index of an inactive segment does not fit the segment.
 */
public class TimeIndexSanityCheckTest {
    private static final int RECORDS = 3;

    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();
    private final LogConfig config = new LogConfig(Map.of(
            TopicConfig.INDEX_INTERVAL_BYTES_CONFIG, "1",
            TopicConfig.RETENTION_MS_CONFIG, "604800000"));
    private final Path timeIndexFile = LogFileUtils.timeIndexFile(logDir, 0, "").toPath();
    private long largestTimestamp;

    @BeforeEach
    public void setUp() throws IOException {
        Files.createDirectories(logDir.toPath());
        UnifiedLog log = openAfterCleanShutdown();
        for (int i = 0; i < RECORDS; i++) {
            time.setCurrentTimeMs(time.milliseconds() + 1);
            largestTimestamp = time.milliseconds();
            log.appendAsLeader(LogTestUtils.records(List.of(new SimpleRecord(largestTimestamp, "value".getBytes()))), 0);
        }
        log.roll();
        log.appendAsLeader(LogTestUtils.records(List.of(new SimpleRecord(largestTimestamp + 1, "value".getBytes()))), 0);
        log.close();
    }

    @AfterEach
    public void tearDown() throws IOException {
        Utils.delete(parentDir);
    }

    @Test
    public void testZeroedTimeIndexIsCorrupt() throws IOException {
        Files.write(timeIndexFile, new byte[(int) Files.size(timeIndexFile)]);
        assertSegmentIsCorrupt();
    }

    @Test
    public void testShortenedTimeIndexIsCorrupt() throws IOException {
        Files.write(timeIndexFile, Arrays.copyOf(Files.readAllBytes(timeIndexFile), 12));
        assertSegmentIsCorrupt();
    }

    @Test
    public void testEmptyTimeIndexIsCorrupt() throws IOException {
        Files.write(timeIndexFile, new byte[0]);
        assertSegmentIsCorrupt();
    }

    @Test
    public void testOffsetIndexWithNegativePositionIsCorrupt() throws IOException {
        byte[] entry = ByteBuffer.allocate(8).putInt(RECORDS - 1).putInt(-1).array();
        Files.write(LogFileUtils.offsetIndexFile(logDir, 0, "").toPath(), entry);
        assertSegmentIsCorrupt();
    }

    @Test
    public void testCompleteTimeIndexIsSane() throws IOException {
        LogSegment segment = openFirstSegment();
        assertDoesNotThrow(() -> segment.sanityCheck(false));
        assertEquals(largestTimestamp, segment.largestTimestamp());
        segment.close();
    }

    @Test
    public void testSegmentWithZeroedTimeIndexIsRetained() throws IOException {
        Files.write(timeIndexFile, new byte[(int) Files.size(timeIndexFile)]);
        UnifiedLog log = openAfterCleanShutdown();
        log.updateHighWatermark(log.logEndOffset());
        assertEquals(0, log.deleteOldSegments(), "no record is older than retention.ms");
        assertEquals(0, log.logStartOffset());
        log.close();
    }

    @Test
    public void testTimestampIsFoundWithZeroedTimeIndex() throws IOException {
        Files.write(timeIndexFile, new byte[(int) Files.size(timeIndexFile)]);
        UnifiedLog log = openAfterCleanShutdown();
        OffsetResultHolder found = log.fetchOffsetByTimestamp(largestTimestamp, Optional.empty());
        assertEquals(RECORDS - 1, found.timestampAndOffsetOpt().orElseThrow().offset);
        log.close();
    }

    private void assertSegmentIsCorrupt() throws IOException {
        LogSegment segment = openFirstSegment();
        assertThrows(CorruptIndexException.class, () -> segment.sanityCheck(false));
        segment.close();
    }

    private LogSegment openFirstSegment() throws IOException {
        return LogSegment.open(logDir, 0, config, time, true, 0, false, "");
    }

    private UnifiedLog openAfterCleanShutdown() throws IOException {
        return UnifiedLog.create(
                logDir, config, 0, Long.MAX_VALUE, time.scheduler, new BrokerTopicStats(), time, 60 * 60 * 1000,
                new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000,
                new LogDirFailureChannel(10), true, Optional.empty());
    }
}
