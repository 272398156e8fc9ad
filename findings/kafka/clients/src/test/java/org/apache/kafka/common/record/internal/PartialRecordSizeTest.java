package org.apache.kafka.common.record.internal;

import org.apache.kafka.common.InvalidRecordException;

import org.junit.jupiter.api.Test;

import java.io.ByteArrayInputStream;
import java.io.IOException;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

/**
 * Sizes of records which a leader reads without their keys and values.
 */
public class PartialRecordSizeTest {
    // Attributes, timestamp delta (a byte longer than necessary), offset delta, no key, no value, no headers
    private static final byte[] BODY = {0, (byte) 0x80, 0, 0, 1, 1, 0};

    @Test
    public void testSizeOfBody() throws IOException {
        PartialDefaultRecord record = read(BODY.length);
        assertEquals(BODY.length + 1, record.sizeInBytes());
        assertEquals(100, record.offset());
    }

    @Test
    public void testSizeBelowBody() {
        assertThrows(InvalidRecordException.class, () -> read(BODY.length - 1));
    }

    @Test
    public void testSizeAboveBody() {
        assertThrows(InvalidRecordException.class, () -> read(BODY.length + 1));
    }

    private static PartialDefaultRecord read(int size) throws IOException {
        byte[] bytes = new byte[BODY.length + 2];  // and a byte of the next record
        bytes[0] = (byte) (2 * size);
        System.arraycopy(BODY, 0, bytes, 1, BODY.length);
        return DefaultRecord.readPartiallyFrom(new ByteArrayInputStream(bytes), 100, 0, 0, null);
    }
}
