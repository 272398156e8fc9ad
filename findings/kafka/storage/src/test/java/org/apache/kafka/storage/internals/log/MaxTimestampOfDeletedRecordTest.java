package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.ListOffsetsRequest;
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
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Lookups of the record with the largest timestamp after records were deleted.
 */
public class MaxTimestampOfDeletedRecordTest {
    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();
    private final long timestamp = time.milliseconds() - 60_000;
    private UnifiedLog log;

    @BeforeEach
    public void setUp() throws IOException {
        Files.createDirectories(logDir.toPath());
        log = UnifiedLog.create(
                logDir, new LogConfig(Map.of()), 0, 0, time.scheduler, new BrokerTopicStats(), time, 60 * 60 * 1000,
                new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000,
                new LogDirFailureChannel(10), true, Optional.empty());
        append(timestamp + 100, timestamp + 10);
        append(timestamp + 30);
        log.roll();
        append(timestamp + 20);
        log.updateHighWatermark(log.logEndOffset());
    }

    @AfterEach
    public void tearDown() throws IOException {
        log.close();
        Utils.delete(parentDir);
    }

    @Test
    public void testAllRecords() throws IOException {
        assertMaxTimestamp(0, timestamp + 100);
    }

    @Test
    public void testDeletedRecordInBatch() throws IOException {
        log.maybeIncrementLogStartOffset(1, LogStartOffsetIncrementReason.ClientRecordDeletion);
        assertMaxTimestamp(2, timestamp + 30);
    }

    @Test
    public void testDeletedBatch() throws IOException {
        log.maybeIncrementLogStartOffset(2, LogStartOffsetIncrementReason.ClientRecordDeletion);
        assertMaxTimestamp(2, timestamp + 30);
    }

    private void append(long... timestamps) throws IOException {
        List<SimpleRecord> values = Arrays.stream(timestamps)
                .mapToObj(each -> new SimpleRecord(each, "value".getBytes())).toList();
        log.appendAsLeader(LogTestUtils.records(values), 0);
    }

    private void assertMaxTimestamp(long offset, long recordTimestamp) throws IOException {
        OffsetResultHolder found = log.fetchOffsetByTimestamp(ListOffsetsRequest.MAX_TIMESTAMP, Optional.empty());
        assertEquals(Optional.of(new TimestampAndOffset(recordTimestamp, offset, Optional.of(0))), found.timestampAndOffsetOpt());
    }
}
