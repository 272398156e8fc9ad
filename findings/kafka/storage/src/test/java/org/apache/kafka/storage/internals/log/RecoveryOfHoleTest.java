package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.apache.kafka.test.TestUtils;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.File;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Power failures after which a segment lacks its last batches, which were not flushed, while the next segment is complete.
 */
public class RecoveryOfHoleTest {
    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();

    @AfterEach
    public void tearDown() throws IOException {
        Utils.delete(parentDir);
    }

    @Test
    public void testSegmentsAfterHoleAreDeleted() throws IOException {
        UnifiedLog log = recoverWithoutSecondBatch(TopicConfig.CLEANUP_POLICY_DELETE);
        assertEquals(1, log.logEndOffset(), "the batch at offset 1 is lost");
        assertEquals(1, log.numberOfSegments());
        log.close();
    }

    @Test
    public void testCompactedLogMayHaveHole() throws IOException {
        UnifiedLog log = recoverWithoutSecondBatch(TopicConfig.CLEANUP_POLICY_COMPACT);
        assertEquals(3, log.logEndOffset());
        log.close();
    }

    private UnifiedLog recoverWithoutSecondBatch(String cleanupPolicy) throws IOException {
        Files.createDirectories(logDir.toPath());
        LogConfig config = new LogConfig(Map.of(TopicConfig.CLEANUP_POLICY_CONFIG, cleanupPolicy));
        UnifiedLog log = openLog(config, true);
        append(log);
        int size = log.activeSegment().size();
        append(log);
        log.roll();
        append(log);
        log.closeHandlers();
        try (FileChannel channel = FileChannel.open(LogFileUtils.logFile(logDir, 0).toPath(), StandardOpenOption.WRITE)) {
            channel.truncate(size);
        }
        return openLog(config, false);
    }

    private void append(UnifiedLog log) throws IOException {
        SimpleRecord value = new SimpleRecord(time.milliseconds(), "key".getBytes(), "value".getBytes());
        log.appendAsLeader(LogTestUtils.records(List.of(value)), 0);
    }

    private UnifiedLog openLog(LogConfig config, boolean cleanShutdown) throws IOException {
        return UnifiedLog.create(
                logDir, config, 0, 0, time.scheduler, new BrokerTopicStats(), time, 60 * 60 * 1000,
                new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000,
                new LogDirFailureChannel(10), cleanShutdown, Optional.empty());
    }
}
