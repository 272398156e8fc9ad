package org.apache.kafka.server.log.remote.storage;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.storage.internals.log.AsyncOffsetReadFutureHolder;
import org.apache.kafka.storage.internals.log.AsyncOffsetReader;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogTestUtils;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;
import org.apache.kafka.storage.internals.log.OffsetResultHolder.FileRecordsOrError;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.FutureTask;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

/**
 * Lookups of the record with the largest timestamp in a log with remote segments.
 */
public class RemoteMaxTimestampTest {
    private final File parentDir = TestUtils.tempDirectory();
    private final File logDir = new File(parentDir, "topic-0");
    private final MockTime time = new MockTime();
    private final long timestamp = time.milliseconds() - 60_000;
    private final TimestampAndOffset remote = new TimestampAndOffset(timestamp, 0, Optional.of(0));
    private final RemoteLogManager remoteLogManager = mock(RemoteLogManager.class);
    private UnifiedLog log;

    @BeforeEach
    public void setUp() throws Exception {
        when(remoteLogManager.findOffsetByTimestamp(any(TopicPartition.class), anyLong(), anyLong(), any()))
                .thenReturn(Optional.of(remote));
        Files.createDirectories(logDir.toPath());
        LogConfig config = new LogConfig(Map.of(TopicConfig.REMOTE_LOG_STORAGE_ENABLE_CONFIG, "true"));
        log = UnifiedLog.create(
                logDir, config, 2, 2, time.scheduler, new BrokerTopicStats(), time, 60 * 60 * 1000,
                new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000, new LogDirFailureChannel(10),
                true, Optional.empty(), new ConcurrentHashMap<>(), true, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    @AfterEach
    public void tearDown() throws IOException {
        log.close();
        Utils.delete(parentDir);
    }

    @Test
    public void testLargestTimestampIsRemote() throws Exception {
        append(timestamp - 30);
        assertEquals(Optional.of(remote), maxTimestamp());
    }

    @Test
    public void testFirstOfEqualTimestampsIsRemote() throws Exception {
        append(timestamp);
        assertEquals(Optional.of(remote), maxTimestamp());
    }

    @Test
    public void testLargestTimestampIsLocal() throws Exception {
        append(timestamp + 30);
        assertEquals(Optional.of(new TimestampAndOffset(timestamp + 30, 2, Optional.of(0))), maxTimestamp());
    }

    private void append(long recordTimestamp) throws IOException {
        log.appendAsLeader(LogTestUtils.records(List.of(new SimpleRecord(recordTimestamp, "value".getBytes()))), 0);
    }

    private Optional<TimestampAndOffset> maxTimestamp() throws Exception {
        AsyncOffsetReader reader = (partition, target, startingOffset, epochs, searchInLocalLog) -> {
            CompletableFuture<FileRecordsOrError> found = new CompletableFuture<>();
            FutureTask<Void> job = new FutureTask<>(new RemoteLogOffsetReader(
                    remoteLogManager, partition, target, startingOffset, epochs, searchInLocalLog, found::complete));
            job.run();
            return new AsyncOffsetReadFutureHolder<>(job, found);
        };
        OffsetResultHolder holder = log.fetchOffsetByTimestamp(ListOffsetsRequest.MAX_TIMESTAMP, Optional.of(reader));
        return holder.futureHolderOpt().isEmpty() ? holder.timestampAndOffsetOpt()
            : holder.futureHolderOpt().get().taskFuture().get().timestampAndOffset();
    }
}
