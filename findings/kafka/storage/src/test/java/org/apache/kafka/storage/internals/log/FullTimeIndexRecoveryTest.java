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
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Recovery of segments for whose batches an index has no room. An append after a restart adds fewer entries than recovery does.
 */
public class FullTimeIndexRecoveryTest {
    private static final int TIME_INDEX_ENTRIES = 4;

    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();
    private final LogConfig config = new LogConfig(Map.of(
            TopicConfig.INDEX_INTERVAL_BYTES_CONFIG, "1",
            TopicConfig.SEGMENT_INDEX_BYTES_CONFIG, String.valueOf(TIME_INDEX_ENTRIES * 12)));

    @BeforeEach
    public void setUp() throws IOException {
        Files.createDirectories(logDir.toPath());
    }

    @AfterEach
    public void tearDown() throws IOException {
        Utils.delete(parentDir);
    }

    @Test
    public void testSegmentThatWasRolledForItsFullTimeIndexIsRecovered() throws IOException {
        writeFullSegment();
        UnifiedLog log = assertDoesNotThrow(() -> openLog(false));
        assertEquals(6, log.logEndOffset());
        assertEquals(List.of(0L, 5L), baseOffsets(log));
        log.close();
    }

    @Test
    public void testLastTimestampIsIndexedAfterRecovery() throws IOException {
        long lastTimestamp = writeFullSegment();
        assertDoesNotThrow(() -> openLog(false).close());
        LogSegment segment = LogSegment.open(logDir, 0, config, time, true, 0, false, "");
        assertEquals(new TimestampOffset(lastTimestamp, 4), segment.timeIndex().lastEntry());
        segment.close();
    }

    /** Writes six batches of which the last one is in the second segment. Returns the timestamp of the one before. */
    private long writeFullSegment() throws IOException {
        UnifiedLog log = openLog(true);
        append(log, 3);
        log.close();
        log = openLog(true);
        append(log, 2);
        long timestamp = time.milliseconds();
        append(log, 1);
        assertEquals(List.of(0L, 5L), baseOffsets(log));
        log.closeHandlers();
        return timestamp;
    }

    private void append(UnifiedLog log, int batches) throws IOException {
        for (int i = 0; i < batches; i++) {
            time.setCurrentTimeMs(time.milliseconds() + 1);
            log.appendAsLeader(LogTestUtils.records(List.of(new SimpleRecord(time.milliseconds(), "value".getBytes()))), 0);
        }
    }

    private static List<Long> baseOffsets(UnifiedLog log) {
        return log.logSegments().stream().map(LogSegment::baseOffset).toList();
    }

    private UnifiedLog openLog(boolean cleanShutdown) throws IOException {
        return UnifiedLog.create(
                logDir, config, 0, 0, time.scheduler, new BrokerTopicStats(), time, 60 * 60 * 1000,
                new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000,
                new LogDirFailureChannel(10), cleanShutdown, Optional.empty());
    }
}
