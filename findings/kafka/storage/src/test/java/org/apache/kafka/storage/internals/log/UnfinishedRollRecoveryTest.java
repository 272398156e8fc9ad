package org.apache.kafka.storage.internals.log;

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
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Power failures during a roll: the end of the old segment was not written, and of the new one only the log file exists.
 */
public class UnfinishedRollRecoveryTest {
    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();

    @BeforeEach
    public void setUp() throws IOException {
        Files.createDirectories(logDir.toPath());
        UnifiedLog log = openLog(true);
        append(log);
        int size = log.activeSegment().size();
        append(log);
        log.roll();
        append(log);
        log.closeHandlers();
        try (FileChannel channel = FileChannel.open(LogFileUtils.logFile(logDir, 0).toPath(), StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.allocate((int) channel.size() - size), size);
        }
    }

    @AfterEach
    public void tearDown() throws IOException {
        Utils.delete(parentDir);
    }

    @Test
    public void testNewSegmentWithIndexes() {
        assertEndsAtFirstCorruptBatch();
    }

    @Test
    public void testNewSegmentWithoutIndexes() throws IOException {
        Files.delete(LogFileUtils.offsetIndexFile(logDir, 2, "").toPath());
        Files.delete(LogFileUtils.timeIndexFile(logDir, 2, "").toPath());
        Files.deleteIfExists(LogFileUtils.producerSnapshotFile(logDir, 2).toPath());
        assertEndsAtFirstCorruptBatch();
    }

    private void assertEndsAtFirstCorruptBatch() {
        UnifiedLog log = assertDoesNotThrow(() -> openLog(false));
        assertEquals(1, log.logEndOffset());
        assertEquals(1, log.numberOfSegments());
        log.close();
    }

    private void append(UnifiedLog log) throws IOException {
        log.appendAsLeader(LogTestUtils.records(List.of(new SimpleRecord(time.milliseconds(), "value".getBytes()))), 0);
    }

    private UnifiedLog openLog(boolean cleanShutdown) throws IOException {
        return UnifiedLog.create(
                logDir, new LogConfig(Map.of()), 0, 0, time.scheduler, new BrokerTopicStats(), time, 60 * 60 * 1000,
                new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000,
                new LogDirFailureChannel(10), cleanShutdown, Optional.empty());
    }
}
