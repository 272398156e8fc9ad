package org.apache.kafka.server.log.remote.metadata.storage;

import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.server.log.remote.storage.LocalTieredStorage;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** LocalTieredStorage whose operations fail on demand: a copy after its files were written, the others before. */
public final class FailingStorage implements RemoteStorageManager {
    /** What fails: 0 nothing, 1 copies, 2 fetches of segments, 3 deletions, 4 copies and deletions. */
    public static volatile int failing;

    private final LocalTieredStorage storage = new LocalTieredStorage();

    private static void fail(int... at) throws RemoteStorageException {
        for (int each : at)
            if (each == failing)
                throw new RemoteStorageException("storage fails");
    }

    public Optional<RemoteLogSegmentMetadata.CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment,
            LogSegmentData data) throws RemoteStorageException {
        Optional<RemoteLogSegmentMetadata.CustomMetadata> made = storage.copyLogSegmentData(segment, data);
        fail(1, 4);
        return made;
    }

    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        fail(2);
        return storage.fetchLogSegment(segment, start);
    }

    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        fail(2);
        return storage.fetchLogSegment(segment, start, end);
    }

    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        return storage.fetchIndex(segment, type);
    }

    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        fail(3, 4);
        storage.deleteLogSegmentData(segment);
    }

    public void configure(Map<String, ?> properties) {
        storage.configure(properties);
    }

    public void close() throws IOException {
        storage.close();
    }
}
