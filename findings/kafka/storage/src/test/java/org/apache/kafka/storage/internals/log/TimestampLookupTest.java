package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.RecordBatch;
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

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Lookups of timestamps which the first segment with a larger one cannot answer.
 */
public class TimestampLookupTest {
    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();
    private final long timestamp = time.milliseconds() - 60_000;
    private UnifiedLog log;

    @BeforeEach
    public void setUp() throws IOException {
        Files.createDirectories(logDir.toPath());
        LogConfig config = new LogConfig(Map.of(TopicConfig.INDEX_INTERVAL_BYTES_CONFIG, "1"));
        log = UnifiedLog.create(
                logDir, config, 0, 0, time.scheduler, new BrokerTopicStats(), time, 60 * 60 * 1000,
                new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000,
                new LogDirFailureChannel(10), true, Optional.empty());
    }

    @AfterEach
    public void tearDown() throws IOException {
        log.close();
        Utils.delete(parentDir);
    }

    @Test
    public void testLookupContinuesAfterDeletedRecords() throws IOException {
        append(timestamp + 100);
        append(timestamp);
        log.roll();
        append(timestamp + 50);
        append(timestamp + 60);
        log.updateHighWatermark(log.logEndOffset());
        log.maybeIncrementLogStartOffset(1, LogStartOffsetIncrementReason.ClientRecordDeletion);
        assertFound(2, timestamp + 50, timestamp + 50);
        assertFound(3, timestamp + 60, timestamp + 51);
    }

    @Test
    public void testLookupContinuesAfterRecordsWithoutTimestamp() throws IOException {
        append(RecordBatch.NO_TIMESTAMP);
        log.roll();
        append(timestamp + 50);
        assertFound(1, timestamp + 50, timestamp);
    }

    @Test
    public void testLookupEndsAtFirstSegmentWithAnswer() throws IOException {
        append(timestamp + 100);
        log.roll();
        append(timestamp + 50);
        assertFound(0, timestamp + 100, timestamp + 50);
    }

    private void append(long recordTimestamp) throws IOException {
        log.appendAsLeader(LogTestUtils.records(List.of(new SimpleRecord(recordTimestamp, "value".getBytes()))), 0);
    }

    private void assertFound(long offset, long recordTimestamp, long target) throws IOException {
        Optional<TimestampAndOffset> found = log.fetchOffsetByTimestamp(target, Optional.empty()).timestampAndOffsetOpt();
        assertEquals(Optional.of(new TimestampAndOffset(recordTimestamp, offset, Optional.of(0))), found);
    }
}
