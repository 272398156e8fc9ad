package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.record.internal.RecordBatch;

import java.io.IOException;

/** LogLoader.loadSegmentFiles: the last time entry is held against the last batches of the segment. */
public final class LoadedTimeIndex {
    private LoadedTimeIndex() { }

    public static void sanityCheck(LogSegment segment, boolean timeIndexFileNewlyCreated) throws IOException {
        segment.sanityCheck(timeIndexFileNewlyCreated);
        segment.timeIndex().sanityCheck();
        long last = segment.timeIndex().lastEntry().timestamp();
        int position = segment.offsetIndex().lookup(segment.offsetIndex().lastOffset()).position();
        if (position < 0 || position > segment.log().sizeInBytes())
            throw new CorruptIndexException("The last offset entry is outside of the log");
        try {
            for (RecordBatch batch : segment.log().batchesFrom(position))
                if (batch.maxTimestamp() > last)
                    throw new CorruptIndexException("The last time entry is older than offset " + batch.lastOffset());
        } catch (CorruptRecordException unflushed) {
            // The records are for recovery to check, not for loading.
        }
    }
}
