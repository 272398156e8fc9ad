package org.apache.kafka.common.record.internal;

import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.utils.internals.ByteUtils;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;

/** DefaultRecord.readPartiallyFrom: the fields of a record have to fill its size. */
public final class RecordSize {
    private RecordSize() { }

    /** Stream that counts what is read or skipped. */
    private static final class Counting extends FilterInputStream {
        int count;

        Counting(InputStream in) {
            super(in);
        }

        @Override
        public int read() throws IOException {
            int read = super.read();
            count += read < 0 ? 0 : 1;
            return read;
        }

        @Override
        public int read(byte[] bytes, int start, int length) throws IOException {
            int read = super.read(bytes, start, length);
            count += Math.max(read, 0);
            return read;
        }

        @Override
        public long skip(long bytes) throws IOException {
            long skipped = super.skip(bytes);
            count += (int) skipped;
            return skipped;
        }
    }

    public static PartialDefaultRecord read(InputStream in, int sizeInBytes, long baseOffset, long baseTimestamp,
            int baseSequence, Long logAppendTime) throws Throwable {
        var unfixed = DefaultRecord.class.getDeclaredMethod("readPartiallyFrom", InputStream.class, int.class, long.class,
            long.class, int.class, Long.class);
        unfixed.setAccessible(true);
        Counting counting = new Counting(in);
        try {
            var record = (PartialDefaultRecord) unfixed.invoke(null, counting, sizeInBytes, baseOffset, baseTimestamp,
                baseSequence, logAppendTime);
            if (counting.count + ByteUtils.sizeOfVarint(counting.count) != sizeInBytes)
                throw new InvalidRecordException("Record size " + sizeInBytes + " does not fit its fields");
            return record;
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }
}
