package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.server.util.MockTime;

import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

/**
 * Batches of producers that claim LogAppendTime, which only a broker may set. Their timestamps are within the limits of the topic.
 */
public class ProducerTimestampTypeTest {
    private final MockTime time = new MockTime();

    @Test
    public void testLogAppendTimeOfProducerIsRejected() {
        assertRejected(CompressionType.NONE);
        assertRejected(CompressionType.GZIP);
    }

    @Test
    public void testCreateTimeOfProducerIsAccepted() {
        assertDoesNotThrow(() -> validate(TimestampType.CREATE_TIME, CompressionType.NONE));
        assertDoesNotThrow(() -> validate(TimestampType.CREATE_TIME, CompressionType.GZIP));
    }

    private void assertRejected(CompressionType compression) {
        RecordValidationException thrown = assertThrows(RecordValidationException.class,
            () -> validate(TimestampType.LOG_APPEND_TIME, compression));
        assertEquals(InvalidTimestampException.class, thrown.invalidException().getClass());
    }

    private void validate(TimestampType claimed, CompressionType type) {
        long now = time.milliseconds();
        Compression compression = Compression.of(type).build();
        MemoryRecords records = MemoryRecords.withRecords(compression, new SimpleRecord(now, "value".getBytes()));
        records.batches().iterator().next().setMaxTimestamp(claimed, now);
        new LogValidator(
                records, new TopicPartition("topic", 0), time, type, compression, false, RecordBatch.CURRENT_MAGIC_VALUE,
                TimestampType.CREATE_TIME, 1000, 1000, 0, AppendOrigin.CLIENT)
            .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), new LogValidatorTest.MetricsRecorder(), BufferSupplier.NO_CACHING);
    }
}
