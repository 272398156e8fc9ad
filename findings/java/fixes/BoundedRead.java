package org.apache.kafka.common.record.internal;

import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;

/** FileRecords.readInto: reading ends where the records end, and not where the file ends. */
public final class BoundedRead {
    private BoundedRead() { }

    public static void readInto(FileRecords records, ByteBuffer buffer, int position) throws Throwable {
        int left = Math.max(0, records.sizeInBytes() - position);
        buffer.limit(buffer.position() + Math.min(buffer.remaining(), left));
        try {
            var unfixed = FileRecords.class.getMethod("readInto$unfixed", ByteBuffer.class, int.class);
            unfixed.invoke(records, buffer, position);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }
}
