package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.test.TestUtils;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.EnumMap;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

/**
 * Restarts of a broker whose cache of remote indexes has files that the cache cannot use. All of them can be fetched again.
 */
public class RemoteIndexCacheRestartTest {
    private static final long BASE_OFFSET = 45;
    private static final int POSITION = 500;

    private final MockTime time = new MockTime();
    private final File logDir = TestUtils.tempDirectory();
    private final RemoteStorageManager rsm = mock(RemoteStorageManager.class);
    private final Map<IndexType, byte[]> remote = new EnumMap<>(IndexType.class);
    private final TopicIdPartition partition = new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("foo", 0));
    private final RemoteLogSegmentMetadata segment = new RemoteLogSegmentMetadata(
            new RemoteLogSegmentId(partition, Uuid.randomUuid()), BASE_OFFSET, BASE_OFFSET + 99, time.milliseconds(),
            0, time.milliseconds(), 1024, Map.of(0, BASE_OFFSET));

    @BeforeEach
    public void setUp() throws RemoteStorageException {
        remote.put(IndexType.OFFSET, ByteBuffer.allocate(8).putInt(50).putInt(POSITION).array());
        remote.put(IndexType.TIMESTAMP, ByteBuffer.allocate(12).putLong(time.milliseconds()).putInt(50).array());
        remote.put(IndexType.TRANSACTION, new byte[0]);
        when(rsm.fetchIndex(any(RemoteLogSegmentMetadata.class), any(IndexType.class)))
                .thenAnswer(call -> new ByteArrayInputStream(remote.get(call.<IndexType>getArgument(1))));
    }

    @AfterEach
    public void tearDown() throws IOException {
        Utils.delete(logDir);
    }

    @Test
    public void testRestartAfterCorruptTransactionIndexWasFetched() throws IOException {
        byte[] sane = remote.put(IndexType.TRANSACTION, new byte[AbortedTxn.TOTAL_SIZE]);
        RemoteIndexCache cache = newCache();
        assertThrows(CorruptIndexException.class, () -> cache.getIndexEntry(segment));
        cache.close();
        remote.put(IndexType.TRANSACTION, sane);
        assertRestartAndLookup();
    }

    @Test
    public void testRestartWithShortenedOffsetIndex() throws IOException {
        fillCache();
        Files.write(RemoteIndexCache.remoteOffsetIndexFile(cacheDir(), segment).toPath(), new byte[9]);
        assertRestartAndLookup();
    }

    @Test
    public void testRestartWithShortenedTimeIndex() throws IOException {
        fillCache();
        Files.write(RemoteIndexCache.remoteTimeIndexFile(cacheDir(), segment).toPath(), new byte[13]);
        assertRestartAndLookup();
    }

    @Test
    public void testRestartWithForeignFile() throws IOException {
        fillCache();
        Files.createFile(new File(cacheDir(), ".nfs0001").toPath());
        assertRestartAndLookup();
    }

    @Test
    public void testRestartWithFileWithoutSegmentId() throws IOException {
        fillCache();
        Files.createFile(new File(cacheDir(), "0_0.index").toPath());
        assertRestartAndLookup();
    }

    private void fillCache() throws IOException {
        RemoteIndexCache cache = newCache();
        assertEquals(POSITION, cache.lookupOffset(segment, BASE_OFFSET + 50));
        cache.close();
    }

    private void assertRestartAndLookup() {
        RemoteIndexCache cache = assertDoesNotThrow(this::newCache);
        assertEquals(POSITION, cache.lookupOffset(segment, BASE_OFFSET + 50));
        cache.close();
    }

    private RemoteIndexCache newCache() throws IOException {
        return new RemoteIndexCache(1024 * 1024, rsm, logDir.toString());
    }

    private File cacheDir() {
        return new File(logDir, RemoteIndexCache.DIR_NAME);
    }
}
