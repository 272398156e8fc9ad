package org.apache.kafka.server.log.remote.storage;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

import java.lang.reflect.InvocationTargetException;
import java.util.Optional;

/** RemoteLogManager.findOffsetByTimestamp: a remote segment without an answer is not the end of the search. */
public final class LaterRemoteSegments {
    private LaterRemoteSegments() { }

    /** Signal that a segment has no answer. */
    private static final class NoAnswer extends RuntimeException {
        final long endOffset;

        NoAnswer(long endOffset) {
            this.endOffset = endOffset;
        }
    }

    public static Optional<TimestampAndOffset> find(RemoteLogManager manager, TopicPartition partition, long timestamp,
            long startOffset, LeaderEpochFileCache epochs) throws Throwable {
        var unfixed = RemoteLogManager.class.getMethod("findOffsetByTimestamp$unfixed", TopicPartition.class, long.class,
            long.class, LeaderEpochFileCache.class);
        long from = startOffset;
        while (true) {
            try {
                @SuppressWarnings("unchecked")
                var found = (Optional<TimestampAndOffset>) unfixed.invoke(manager, partition, timestamp, from, epochs);
                return found;
            } catch (InvocationTargetException thrown) {
                if (!(thrown.getCause() instanceof NoAnswer segment))
                    throw thrown.getCause();
                from = segment.endOffset + 1;
            }
        }
    }

    public static Optional<TimestampAndOffset> lookup(RemoteLogManager manager, RemoteLogSegmentMetadata segment,
            long timestamp, long startOffset, int maxBytes) throws Exception {
        Optional<TimestampAndOffset> found = manager.lookupTimestamp(segment, timestamp, startOffset, maxBytes);
        if (found.isEmpty())
            throw new NoAnswer(segment.endOffset());
        return found;
    }
}
