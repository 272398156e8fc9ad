package findings;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogManagerConfig;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadataManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * RemoteLogManager of the release on the class path (3.9 and later), over segments that lie in a directory.
 *
 * It stands for the mocks of RemoteLogManagerTest in Kafka's own tests.
 */
public final class TestTier implements Closeable {
    private static final TopicIdPartition PARTITION =
        new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("t", 0));
    private static final List<RemoteLogSegmentMetadata> SEGMENTS = new ArrayList<>();
    private static File directory;

    private final Object manager;
    private final Object epochs;

    /**
     * Makes the first segments of a log remote.
     *
     * @param cache     directory of the cache.
     * @param remote    directory with the remote segments, and a log opened on it, for its leader epochs.
     * @param local     log without these segments.
     */
    public TestTier(File cache, File remote, TestLog all, TestLog local) throws Throwable {
        directory = remote;
        SEGMENTS.clear();
        epochs = all.leaderEpochs();
        manager = create(cache, topic -> Optional.of(local.unwrap()));
        Field ids = manager.getClass().getDeclaredField("topicIdByPartitionMap");
        ids.setAccessible(true);
        @SuppressWarnings("unchecked")
        Map<TopicPartition, Uuid> map = (Map<TopicPartition, Uuid>) ids.get(manager);
        map.put(PARTITION.topicPartition(), PARTITION.topicId());
    }

    /** Says that the segment with this base offset is in remote storage. */
    public void add(long baseOffset, long endOffset, long maxTimestamp) {
        RemoteLogSegmentId id = new RemoteLogSegmentId(PARTITION, Uuid.randomUuid());
        SEGMENTS.add(new RemoteLogSegmentMetadata(id, baseOffset, endOffset, maxTimestamp, 0, maxTimestamp,
            (int) file(baseOffset, ".log").length(), Map.of(0, 0L)).createWithUpdates(
                new RemoteLogSegmentMetadataUpdate(id, maxTimestamp, Optional.empty(),
                    RemoteLogSegmentState.COPY_SEGMENT_FINISHED, 0)));
    }

    /** The offset of the first record in remote storage at or after a timestamp; -1 for none. */
    public long offsetForTimestamp(long timestamp, long startOffset) throws Throwable {
        for (Method method : manager.getClass().getMethods())
            if (method.getName().equals("findOffsetByTimestamp")) {
                Optional<?> found = (Optional<?>) TestLog.call(method, manager, PARTITION.topicPartition(), timestamp,
                    startOffset, epochs);
                return found.isEmpty() ? -1 : TestLog.number(found.get(), "offset");
            }
        throw new IllegalStateException("findOffsetByTimestamp");
    }

    /** The offset that ListOffsets answers for -3, the largest timestamp of the partition; -1 for none. */
    public long offsetOfMaxTimestamp(TestLog local) throws Throwable {
        return local.offsetForTimestamp(-3, manager);
    }

    @Override
    public void close() throws IOException {
        ((Closeable) manager).close();
    }

    private static Object create(File cache, Function<TopicPartition, Optional<Object>> logs) throws Throwable {
        Class<?> type = TestLog.classOrNull("org.apache.kafka.server.log.remote.storage.RemoteLogManager");
        if (type == null)
            type = Class.forName("kafka.log.remote.RemoteLogManager");  // up to 4.0
        Constructor<?> constructor = type.getConstructors()[0];
        Class<?>[] parameters = constructor.getParameterTypes();
        Object[] arguments = new Object[parameters.length];
        BiConsumer<TopicPartition, Long> ignored = (partition, offset) -> { };
        int strings = 0;
        for (int i = 0; i < parameters.length; i++) {
            if (parameters[i] == int.class)
                arguments[i] = 1;
            else if (parameters[i] == String.class)
                arguments[i] = strings++ == 0 ? cache.getPath() : "cluster";
            else if (parameters[i] == Function.class)
                arguments[i] = logs;
            else if (parameters[i] == BiConsumer.class)
                arguments[i] = ignored;
            else if (parameters[i] == Metrics.class)
                arguments[i] = new Metrics();
            else if (parameters[i] == RemoteLogManagerConfig.class)
                arguments[i] = config();
            else
                arguments[i] = TestLog.part(parameters[i], Map.of());
        }
        return TestLog.call(constructor, arguments);
    }

    private static RemoteLogManagerConfig config() throws Throwable {
        Map<String, Object> config = new HashMap<>();
        config.put("remote.log.storage.system.enable", "true");
        config.put("remote.log.storage.manager.class.name", Storage.class.getName());
        config.put("remote.log.metadata.manager.class.name", Metadata.class.getName());
        config.put("remote.log.metadata.manager.listener.name", "L");
        ConfigDef definition = (ConfigDef) RemoteLogManagerConfig.class.getMethod("configDef").invoke(null);
        return new RemoteLogManagerConfig(new AbstractConfig(definition, config));
    }

    private static File file(long baseOffset, String suffix) {
        return new File(directory, String.format("%020d%s", baseOffset, suffix));
    }

    /** Remote storage: the files of the directory. */
    public static final class Storage implements RemoteStorageManager {
        @Override
        public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) {
            if (type == IndexType.TRANSACTION)
                return InputStream.nullInputStream();
            return open(file(metadata.startOffset(), type == IndexType.OFFSET ? ".index" : ".timeindex"), 0);
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start) {
            return open(file(metadata.startOffset(), ".log"), start);
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start, int end) {
            return open(file(metadata.startOffset(), ".log"), start);
        }

        private static InputStream open(File file, int start) {
            try {
                InputStream stream = Files.newInputStream(file.toPath());
                stream.skipNBytes(start);
                return stream;
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }

        @Override
        public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata metadata, LogSegmentData data) {
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

    /** Metadata of the segments that were added. */
    public static final class Metadata implements RemoteLogMetadataManager {
        @Override
        public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition partition) {
            return SEGMENTS.iterator();
        }

        @Override
        public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition partition, int epoch) {
            return SEGMENTS.iterator();
        }

        @Override
        public CompletableFuture<Void> addRemoteLogSegmentMetadata(RemoteLogSegmentMetadata metadata) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<Void> updateRemoteLogSegmentMetadata(RemoteLogSegmentMetadataUpdate update) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Optional<RemoteLogSegmentMetadata> remoteLogSegmentMetadata(TopicIdPartition partition, int epoch,
                long offset) {
            return Optional.empty();
        }

        @Override
        public Optional<Long> highestOffsetForEpoch(TopicIdPartition partition, int epoch) {
            return Optional.empty();
        }

        @Override
        public CompletableFuture<Void> putRemotePartitionDeleteMetadata(RemotePartitionDeleteMetadata metadata) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void onPartitionLeadershipChanges(Set<TopicIdPartition> leaders, Set<TopicIdPartition> followers) {
        }

        @Override
        public void onStopPartitions(Set<TopicIdPartition> partitions) {
        }

        @Override
        public long remoteLogSize(TopicIdPartition partition, int epoch) {
            return 0;
        }

        @Override
        public void configure(Map<String, ?> configs) {
        }

        @Override
        public void close() {
        }
    }
}
