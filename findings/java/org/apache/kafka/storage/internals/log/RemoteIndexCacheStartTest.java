package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

/** A broker's start with what an earlier run left in remote-log-index-cache. */
public class RemoteIndexCacheStartTest {
    private static final int CACHE_SIZE = 1024 * 1024;
    private static final long BASE_OFFSET = 100;

    @TempDir
    File logDir;

    private final Storage storage = new Storage();
    private final RemoteLogSegmentMetadata metadata = new RemoteLogSegmentMetadata(
        new RemoteLogSegmentId(new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("t", 0)), Uuid.randomUuid()),
        BASE_OFFSET, BASE_OFFSET + 99, 5000L, 0, 5000L, 1000, Map.of(0, BASE_OFFSET));

    @Test
    public void testCorruptTransactionIndexFromRemoteStorageDoesNotPreventRestart() throws Exception {
        byte[] sound = storage.indexes.put(IndexType.TRANSACTION, new byte[34]);  // 34 zero bytes: one entry
        RemoteIndexCache cache = new RemoteIndexCache(CACHE_SIZE, storage, logDir.getPath());
        assertThrows(CorruptIndexException.class, () -> cache.getIndexEntry(metadata));
        cache.close();

        storage.indexes.put(IndexType.TRANSACTION, sound);  // remote storage is healthy again
        assertCacheOpensAndAnswers();
    }

    @Test
    public void testForeignFileDoesNotPreventStart() throws Exception {
        fillAndClose();
        Files.createFile(cacheDir().resolve(".nfs0001"));
        assertCacheOpensAndAnswers();
    }

    @Test
    public void testFileWithoutSegmentIdDoesNotPreventStart() throws Exception {
        fillAndClose();
        Files.createFile(cacheDir().resolve("0_notauuid.index"));
        assertCacheOpensAndAnswers();
    }

    @Test
    public void testCorruptCachedTimeIndexDoesNotPreventStart() throws Exception {
        fillAndClose();
        Files.write(cachedFile(".timeindex"), new byte[13]);  // not a multiple of the entry size
        assertCacheOpensAndAnswers();
    }

    @Test
    public void testCorruptCachedOffsetIndexDoesNotPreventStart() throws Exception {
        fillAndClose();
        Files.write(cachedFile(".index"), new byte[9]);
        assertCacheOpensAndAnswers();
    }

    private void fillAndClose() throws Exception {
        RemoteIndexCache cache = new RemoteIndexCache(CACHE_SIZE, storage, logDir.getPath());
        cache.getIndexEntry(metadata);
        cache.close();
    }

    private void assertCacheOpensAndAnswers() {
        RemoteIndexCache cache = assertDoesNotThrow(
            () -> new RemoteIndexCache(CACHE_SIZE, storage, logDir.getPath()), "the broker does not start");
        try {
            assertEquals(500, cache.lookupOffset(metadata, BASE_OFFSET + 50));
        } finally {
            cache.close();
        }
    }

    private Path cacheDir() {
        return logDir.toPath().resolve("remote-log-index-cache");
    }

    private Path cachedFile(String suffix) throws IOException {
        try (var files = Files.list(cacheDir())) {
            return files.filter(file -> file.toString().endsWith(suffix)).findFirst().orElseThrow();
        }
    }

    /** Remote storage with the three indexes of one segment. */
    private static final class Storage implements RemoteStorageManager {
        final Map<IndexType, byte[]> indexes = new EnumMap<>(IndexType.class);

        Storage() {
            indexes.put(IndexType.OFFSET, ByteBuffer.allocate(8).putInt(50).putInt(500).array());
            indexes.put(IndexType.TIMESTAMP, ByteBuffer.allocate(12).putLong(5000).putInt(50).array());
            indexes.put(IndexType.TRANSACTION, new byte[0]);
        }

        @Override
        public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) {
            return new ByteArrayInputStream(indexes.get(type));
        }

        @Override
        public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata metadata, LogSegmentData data) {
            throw new UnsupportedOperationException();
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start) {
            throw new UnsupportedOperationException();
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start, int end) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void deleteLogSegmentData(RemoteLogSegmentMetadata metadata) {
        }

        @Override
        public void configure(Map<String, ?> configs) {
        }

        @Override
        public void close() {
        }
    }
}
