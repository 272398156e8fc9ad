package org.apache.kafka.tools;

import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;

import java.io.File;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** DumpLogSegments.dumpBatchRecords: before the first record there is no offset that it could follow. */
public final class FirstOffset {
    private FirstOffset() { }

    public static void dump(FileChannelRecordBatch batch, AtomicLong lastOffset, File file,
            Map<String, Map<Long, Long>> gaps, boolean skips, boolean prints, DumpLogSegments.MessageParser<?, ?> parser)
            throws ReflectiveOperationException {
        if (lastOffset.get() == -1 && batch.iterator().hasNext())
            lastOffset.set(batch.iterator().next().offset() - 1);
        for (var method : DumpLogSegments.class.getDeclaredMethods())
            if (method.getName().equals("dumpBatchRecords$unfixed")) {
                method.setAccessible(true);
                method.invoke(null, batch, lastOffset, file, gaps, skips, prints, parser);
            }
    }
}
