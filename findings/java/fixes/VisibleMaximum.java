package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.server.log.remote.storage.RemoteLogManager;
import org.apache.kafka.server.log.remote.storage.RemoteMaximum;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

import java.io.IOException;
import java.util.Optional;

/** UnifiedLog.fetchOffsetByTimestamp: -3 reads remote segments, and no record before the log start offset. */
public final class VisibleMaximum {
    private VisibleMaximum() { }

    public static OffsetResultHolder fetch(UnifiedLog log, long timestamp, Optional<AsyncOffsetReader> remote)
            throws ReflectiveOperationException, IOException, RemoteStorageException {
        if (timestamp != ListOffsetsRequest.MAX_TIMESTAMP) {
            var unfixed = UnifiedLog.class.getMethod("fetchOffsetByTimestamp$unfixed", long.class, Optional.class);
            return (OffsetResultHolder) unfixed.invoke(log, timestamp, remote);
        }
        TimestampAndOffset found = remote.isPresent() && log.remoteLogEnabled()
            ? RemoteMaximum.find((RemoteLogManager) remote.get(), log) : null;
        for (LogSegment segment : log.logSegments()) {
            if (segment.maxTimestampSoFar() <= (found == null ? RecordBatch.NO_TIMESTAMP : found.timestamp))
                continue;
            for (RecordBatch batch : segment.log().batches())
                for (Record record : batch)
                    if (record.offset() >= log.logStartOffset() && (found == null || record.timestamp() > found.timestamp))
                        found = new TimestampAndOffset(record.timestamp(), record.offset(),
                            Optional.of(batch.partitionLeaderEpoch()));
        }
        return new OffsetResultHolder(found);
    }
}
