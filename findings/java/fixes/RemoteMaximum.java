package org.apache.kafka.server.log.remote.storage;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.IOException;
import java.util.Iterator;
import java.util.Optional;

/** The record with the largest timestamp in the remote segments of a log. */
public final class RemoteMaximum {
    private RemoteMaximum() { }

    public static TimestampAndOffset find(RemoteLogManager manager, UnifiedLog log)
            throws RemoteStorageException, IOException, ReflectiveOperationException {
        var ids = RemoteLogManager.class.getDeclaredField("topicIdByPartitionMap");
        ids.setAccessible(true);
        var id = (org.apache.kafka.common.Uuid) ((java.util.Map<?, ?>) ids.get(manager)).get(log.topicPartition());
        long largest = RecordBatch.NO_TIMESTAMP;
        Iterator<RemoteLogSegmentMetadata> segments = manager.remoteLogMetadataManager()
            .listRemoteLogSegments(new TopicIdPartition(id, log.topicPartition()));
        while (segments.hasNext()) {
            RemoteLogSegmentMetadata segment = segments.next();
            if (segment.endOffset() >= log.logStartOffset())
                largest = Math.max(largest, segment.maxTimestampMs());
        }
        if (largest == RecordBatch.NO_TIMESTAMP)
            return null;
        Optional<TimestampAndOffset> found = manager.findOffsetByTimestamp(log.topicPartition(), largest,
            log.logStartOffset(), log.leaderEpochCache());
        return found.orElse(null);
    }
}
