package org.apache.kafka.server.log.remote.storage;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.log.remote.TopicPartitionLog;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogTestUtils;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.apache.kafka.test.TestUtils;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

/**
 * Lookups of timestamps which the first remote segment with a larger one cannot answer.
 */
public class RemoteTimestampLookupTest {
    private static final long LOCAL_START_OFFSET = 4;

    private final TopicIdPartition partition = new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("topic", 0));
    private final File parentDir = TestUtils.tempDirectory();
    private final File localDir = new File(parentDir, "topic-0");
    private final File remoteDir = new File(parentDir, "remote");
    private final MockTime time = new MockTime();
    private final long timestamp = time.milliseconds() - 60_000;
    private final RemoteStorageManager rsm = mock(RemoteStorageManager.class);
    private final RemoteLogMetadataManager rlmm = mock(RemoteLogMetadataManager.class);
    private final Map<RemoteLogSegmentMetadata, LogSegment> remote =
            new TreeMap<>((one, two) -> Long.compare(one.startOffset(), two.startOffset()));
    private final Metrics metrics = new Metrics(time);
    private UnifiedLog log;
    private RemoteLogManager remoteLogManager;

    @BeforeEach
    public void setUp() throws Exception {
        Files.createDirectories(localDir.toPath());
        Files.createDirectories(remoteDir.toPath());
        LogConfig config = new LogConfig(Map.of(TopicConfig.REMOTE_LOG_STORAGE_ENABLE_CONFIG, "true"));
        log = UnifiedLog.create(
                localDir, config, LOCAL_START_OFFSET, LOCAL_START_OFFSET, time.scheduler, new BrokerTopicStats(), time,
                60 * 60 * 1000, new ProducerStateManagerConfig(24 * 60 * 60 * 1000, false), 10 * 60 * 1000,
                new LogDirFailureChannel(10), true, Optional.of(partition.topicId()), new ConcurrentHashMap<>(),
                true, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        log.leaderEpochCache().assign(0, 0);
        when(rlmm.listRemoteLogSegments(any(TopicIdPartition.class), anyInt())).thenAnswer(call -> remote.keySet().iterator());
        when(rsm.fetchIndex(any(RemoteLogSegmentMetadata.class), any(IndexType.class)))
                .thenAnswer(call -> index(remote.get(call.<RemoteLogSegmentMetadata>getArgument(0)), call.getArgument(1)));
        when(rsm.fetchLogSegment(any(RemoteLogSegmentMetadata.class), anyInt())).thenAnswer(call -> {
            InputStream stream = new FileInputStream(remote.get(call.<RemoteLogSegmentMetadata>getArgument(0)).log().file());
            stream.skipNBytes(call.<Integer>getArgument(1));
            return stream;
        });
        remoteLogManager = newRemoteLogManager();
        remoteLogManager.onLeadershipChange(Set.of(), Set.of(partitionLog()), Map.of("topic", partition.topicId()));
    }

    @AfterEach
    public void tearDown() throws IOException {
        remoteLogManager.close();
        metrics.close();
        log.close();
        for (LogSegment segment : remote.values())
            segment.close();
        Utils.delete(parentDir);
    }

    @Test
    public void testLookupContinuesAfterDeletedRecords() throws Exception {
        addRemoteSegment(0, timestamp + 100, timestamp);
        addRemoteSegment(2, timestamp + 50, timestamp + 60);
        assertFound(0, timestamp + 100, timestamp + 50, 0);
        assertFound(2, timestamp + 50, timestamp + 50, 1);
    }

    @Test
    public void testLookupWithoutAnswer() throws Exception {
        addRemoteSegment(0, timestamp + 100, timestamp);
        addRemoteSegment(2, timestamp + 50, timestamp + 60);
        assertEquals(Optional.empty(), lookup(timestamp + 70, 1));
        assertEquals(Optional.empty(), lookup(timestamp + 101, 0));
    }

    private void assertFound(long offset, long recordTimestamp, long target, long startingOffset) throws Exception {
        assertEquals(Optional.of(new TimestampAndOffset(recordTimestamp, offset, Optional.of(0))), lookup(target, startingOffset));
    }

    private Optional<TimestampAndOffset> lookup(long target, long startingOffset) throws Exception {
        return remoteLogManager.findOffsetByTimestamp(partition.topicPartition(), target, startingOffset, log.leaderEpochCache());
    }

    private void addRemoteSegment(long baseOffset, long... timestamps) throws IOException {
        LogSegment segment = LogTestUtils.createSegment(baseOffset, remoteDir, 1, time);
        long offset = baseOffset;
        for (long each : timestamps) {
            segment.append(offset, LogTestUtils.records(List.of(new SimpleRecord(each, "value".getBytes())), offset, 0));
            offset++;
        }
        segment.onBecomeInactiveSegment();
        RemoteLogSegmentId id = new RemoteLogSegmentId(partition, Uuid.randomUuid());
        RemoteLogSegmentMetadata metadata = new RemoteLogSegmentMetadata(
                id, baseOffset, offset - 1, segment.largestTimestamp(), 0, time.milliseconds(), segment.size(), Map.of(0, baseOffset));
        remote.put(metadata.createWithUpdates(new RemoteLogSegmentMetadataUpdate(
                id, time.milliseconds(), Optional.empty(), RemoteLogSegmentState.COPY_SEGMENT_FINISHED, 0)), segment);
    }

    private static InputStream index(LogSegment segment, IndexType type) throws IOException {
        return switch (type) {
            case OFFSET -> new FileInputStream(segment.offsetIndexFile());
            case TIMESTAMP -> new FileInputStream(segment.timeIndexFile());
            default -> InputStream.nullInputStream();
        };
    }

    private TopicPartitionLog partitionLog() {
        return new TopicPartitionLog() {
            @Override
            public TopicPartition topicPartition() {
                return partition.topicPartition();
            }

            @Override
            public Optional<UnifiedLog> unifiedLog() {
                return Optional.of(log);
            }
        };
    }

    private RemoteLogManager newRemoteLogManager() throws IOException {
        RemoteLogManagerConfig config = new RemoteLogManagerConfig(new AbstractConfig(RemoteLogManagerConfig.configDef(), Map.of(
                RemoteLogManagerConfig.REMOTE_LOG_STORAGE_SYSTEM_ENABLE_PROP, "true",
                RemoteLogManagerConfig.REMOTE_STORAGE_MANAGER_CLASS_NAME_PROP, NoOpRemoteStorageManager.class.getName(),
                RemoteLogManagerConfig.REMOTE_LOG_METADATA_MANAGER_CLASS_NAME_PROP, NoOpRemoteLogMetadataManager.class.getName(),
                RemoteLogManagerConfig.REMOTE_LOG_METADATA_MANAGER_LISTENER_NAME_PROP, "PLAINTEXT")));
        return new RemoteLogManager(
                config, 0, parentDir.getPath(), "cluster", time, tp -> Optional.of(log), (tp, offset) -> { },
                new BrokerTopicStats(true), metrics, Optional.empty()) {
            @Override
            RemoteStorageManager createRemoteStorageManager() {
                return rsm;
            }

            @Override
            RemoteLogMetadataManager createRemoteLogMetadataManager() {
                return rlmm;
            }
        };
    }
}
