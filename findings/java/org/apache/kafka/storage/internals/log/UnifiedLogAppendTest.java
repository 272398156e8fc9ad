package org.apache.kafka.storage.internals.log;

import findings.TestLog;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.zip.CRC32C;
import java.util.zip.GZIPOutputStream;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Appends of several batches, and transactions that began before the log start. */
public class UnifiedLogAppendTest {
    private static final long T = 1_700_000_000_000L;
    private static final int HEADER_SIZE = 61;

    @TempDir
    File parent;
    private File dir;

    @BeforeEach
    public void setUp() {
        dir = new File(parent, "t-0");
        assertTrue(dir.mkdir());
    }

    @Test
    public void testFollowerAppendsMoreBatchesThanIndexHasRoomFor() throws Throwable {
        // Room for 5 offset entries and 3 time entries; each fetch brings 4 batches.
        Map<String, String> config = Map.of("index.interval.bytes", "1", "segment.index.bytes", "40");
        try (TestLog log = TestLog.open(dir, config)) {
            for (int fetch = 0; fetch < 4; fetch++) {
                long first = 4L * fetch;
                assertDoesNotThrow(() -> log.appendAsFollower(first, T + first, T + first + 1, T + first + 2, T + first + 3),
                    "the follower marks the partition as failed");
                assertEquals(first + 4, log.logEndOffset());
            }
        }
    }

    @Test
    public void testReadOfPreallocatedSegmentEndsWithItsRecords() throws Throwable {
        try (TestLog log = TestLog.open(dir, Map.of("preallocate", "true", "segment.bytes", "1048576"))) {
            log.append(T);
            ByteBuffer buffer = ByteBuffer.allocate(4096);
            log.readLastSegment(buffer);
            assertEquals(log.lastSegmentSize(), buffer.remaining(), "zeros follow the records");
        }
    }

    @Test
    public void testLastStableOffsetIsNotBeforeLogStartOffset() throws Throwable {
        try (TestLog log = TestLog.open(dir, Map.of())) {
            log.appendTransactional(7, 0, T, T + 1, T + 2, T + 3);  // one batch, offsets 0 to 3, left open
            log.deleteRecordsBefore(2);
            assertEquals(2, log.logStartOffset());
            assertEquals(2, log.lastStableOffset());
        }
    }

    @Test
    public void testHighWatermarkInsideBatchStays() throws Throwable {
        try (TestLog log = TestLog.open(dir, Map.of())) {
            log.append(T, T + 1, T + 2, T + 3);  // one batch, offsets 0 to 3
            assertEquals(2, log.fetchedHighWatermark(2));
        }
    }

    @Test
    public void testLeaderRejectsCompressedRecordOfWrongSize() throws Throwable {
        ByteBuffer plain = TestLog.batch(T, T + 1);
        byte[] records = new byte[plain.remaining() - HEADER_SIZE];
        plain.position(HEADER_SIZE).get(records);
        records[0] = 2;  // the size of the first record: 1 byte, as a zigzag number
        ByteArrayOutputStream compressed = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(compressed)) {
            gzip.write(records);
        }
        ByteBuffer batch = ByteBuffer.allocate(HEADER_SIZE + compressed.size());
        batch.put(plain.rewind().limit(HEADER_SIZE)).put(compressed.toByteArray()).flip();
        batch.putInt(8, batch.limit() - 12).putShort(21, (short) 1);  // length; attributes: gzip
        updateChecksum(batch);
        try (TestLog log = TestLog.open(dir, Map.of())) {
            assertThrows(RuntimeException.class, () -> log.appendBytes(batch), "no consumer can read this batch");
            assertEquals(0, log.logEndOffset());
        }
    }

    @Test
    public void testLeaderRejectsLogAppendTimeOfProducer() throws Throwable {
        ByteBuffer batch = TestLog.batch(T);
        batch.putShort(21, (short) 8).putLong(35, T + 1000);  // attributes: LogAppendTime; largest timestamp
        updateChecksum(batch);
        try (TestLog log = TestLog.open(dir, Map.of())) {
            assertThrows(RuntimeException.class, () -> log.appendBytes(batch), "the topic has CreateTime");
            assertEquals(0, log.logEndOffset());
        }
    }

    private static void updateChecksum(ByteBuffer batch) {
        CRC32C checksum = new CRC32C();
        checksum.update(batch.duplicate().position(21));
        batch.putInt(17, (int) checksum.getValue());
    }
}
