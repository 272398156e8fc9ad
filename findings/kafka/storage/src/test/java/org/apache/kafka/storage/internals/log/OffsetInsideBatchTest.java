package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
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
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Offsets of a log that are inside a batch.
 */
public class OffsetInsideBatchTest {
    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();
    private final SimpleRecord[] values = IntStream.range(0, 4)
            .mapToObj(i -> new SimpleRecord(time.milliseconds() + i, "value".getBytes())).toArray(SimpleRecord[]::new);
    private UnifiedLog log;

    @BeforeEach
    public void setUp() throws IOException {
        Files.createDirectories(logDir.toPath());
        log = UnifiedLog.create(
                logDir, new LogConfig(Map.of()), 0, 0, time.scheduler, new BrokerTopicStats(), time, 60 * 60 * 1000,
                new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000,
                new LogDirFailureChannel(10), true, Optional.empty());
    }

    @AfterEach
    public void tearDown() throws IOException {
        log.close();
        Utils.delete(parentDir);
    }

    @Test
    public void testLastStableOffsetIsNotBeforeLogStartOffset() throws IOException {
        log.appendAsLeader(MemoryRecords.withTransactionalRecords(Compression.NONE, 7L, (short) 0, 0, values), 0);
        log.updateHighWatermark(log.logEndOffset());
        log.maybeIncrementLogStartOffset(2, LogStartOffsetIncrementReason.ClientRecordDeletion);
        assertEquals(2, log.logStartOffset());
        assertEquals(2, log.lastStableOffset());
        assertEquals(2, log.fetchOffsetSnapshot().lastStableOffset().messageOffset);
    }

    @Test
    public void testHighWatermarkIsNotMovedToBaseOffset() throws IOException {
        log.appendAsLeader(MemoryRecords.withRecords(Compression.NONE, values), 0);
        log.updateHighWatermark(2);
        LogOffsetMetadata highWatermark = log.fetchOffsetSnapshot().highWatermark();
        assertEquals(2, highWatermark.messageOffset);
        assertEquals(0, highWatermark.relativePositionInSegment);
        assertEquals(2, log.highWatermark());
    }
}
