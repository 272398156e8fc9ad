package org.apache.kafka.common.record.internal;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.test.TestUtils;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * Reads of a file that is longer than its records.
 */
public class PreallocatedFileRecordsTest {
    private static final int FILE_SIZE = 4096;

    private final MemoryRecords appended = MemoryRecords.withRecords(Compression.NONE, new SimpleRecord("value".getBytes()));
    private File file;
    private FileRecords records;

    @BeforeEach
    public void setUp() throws IOException {
        file = TestUtils.tempFile();
        records = FileRecords.open(file, true, false, FILE_SIZE, true);
        records.append(appended);
        assertEquals(FILE_SIZE, file.length());
    }

    @AfterEach
    public void tearDown() throws IOException {
        records.close();
        Files.delete(file.toPath());
    }

    @Test
    public void testReadEndsWithRecords() throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(FILE_SIZE);
        records.readInto(buffer, 0);
        assertEquals(appended.buffer(), buffer);
    }

    @Test
    public void testReadAtEndOfRecords() throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(FILE_SIZE);
        records.readInto(buffer, records.sizeInBytes());
        assertEquals(0, buffer.remaining());
    }

    @Test
    public void testReadIntoSmallBuffer() throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(10);
        records.readInto(buffer, 5);
        assertEquals(appended.buffer().slice(5, 10), buffer);
    }
}
