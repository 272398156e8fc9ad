package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

import java.lang.reflect.InvocationTargetException;
import java.util.Optional;

/** LogValidator.validateTimestamp: the type is checked whether or not the timestamp is within the limits. */
public final class ProducersTimestampType {
    private ProducersTimestampType() { }

    public static Optional<?> validate(RecordBatch batch, Record record, int index, long now, TimestampType type,
            long beforeMaxMs, long afterMaxMs) throws Throwable {
        if (batch.timestampType() == TimestampType.LOG_APPEND_TIME)
            throw new InvalidTimestampException("Producer should not set timestamp type to LogAppendTime.");
        var unfixed = LogValidator.class.getDeclaredMethod("validateTimestamp$unfixed", RecordBatch.class, Record.class,
            int.class, long.class, TimestampType.class, long.class, long.class);
        unfixed.setAccessible(true);
        try {
            return (Optional<?>) unfixed.invoke(null, batch, record, index, now, type, beforeMaxMs, afterMaxMs);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }
}
