package org.apache.kafka.tools;

import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;

import java.util.ArrayList;
import java.util.List;

/** DumpLogSegments.dumpTimeIndex: reading ends at the batch that an entry names. */
public final class IndexedBatch {
    private static long named;

    private IndexedBatch() { }

    public static OffsetPosition lookup(OffsetIndex index, long offset) {
        named = offset;
        return index.lookup(offset);
    }

    public static Iterable<FileChannelRecordBatch> batches(FileRecords records) {
        List<FileChannelRecordBatch> read = new ArrayList<>();
        for (FileChannelRecordBatch batch : records.batches()) {
            read.add(batch);
            if (batch.lastOffset() >= named)
                break;
        }
        return read;
    }
}
