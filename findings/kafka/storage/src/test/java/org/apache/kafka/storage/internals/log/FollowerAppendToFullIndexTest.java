package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.MemoryRecords;
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
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Fetches of a follower that bring more batches than the indexes of the active segment have room for.
 */
public class FollowerAppendToFullIndexTest {
    private static final int BATCHES = 4;

    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();
    private UnifiedLog log;

    @BeforeEach
    public void setUp() throws IOException {
        Files.createDirectories(logDir.toPath());
        LogConfig config = new LogConfig(Map.of(
                TopicConfig.INDEX_INTERVAL_BYTES_CONFIG, "1",
                TopicConfig.SEGMENT_INDEX_BYTES_CONFIG, "40"));
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
    public void testFollowerAppendsMoreBatchesThanIndexHasRoomFor() throws IOException {
        for (int fetch = 1; fetch <= 4; fetch++) {
            assertDoesNotThrow(() -> log.appendAsFollower(fetchedRecords(), 0));
            assertEquals(fetch * BATCHES, log.logEndOffset());
        }
        long expected = 0;
        for (LogSegment segment : log.logSegments()) {
            for (RecordBatch batch : segment.log().batches())
                assertEquals(expected++, batch.baseOffset());
        }
        assertEquals(log.logEndOffset(), expected, "each batch is in the log once");
    }

    private MemoryRecords fetchedRecords() {
        ByteBuffer buffer = ByteBuffer.allocate(1024);
        for (int i = 0; i < BATCHES; i++) {
            time.setCurrentTimeMs(time.milliseconds() + 1);
            SimpleRecord value = new SimpleRecord(time.milliseconds(), "value".getBytes());
            buffer.put(LogTestUtils.records(List.of(value), log.logEndOffset() + i, 0).buffer());
        }
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }
}
