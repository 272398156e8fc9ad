package org.apache.kafka.server.log.remote.metadata.storage;

import java.lang.reflect.Constructor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadataManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

/**
 * RemoteLogMetadataManager without a topic: each event changes Kafka's store of metadata immediately. The store orders
 * unreferenced segments with the same start offset by random ids; this class orders them by the time of their copy.
 *
 * It is compiled against each release and loaded by the loader of its classes, because the store's methods are not public.
 */
public final class MetadataInMemory implements RemoteLogMetadataManager {
    private RemotePartitionMetadataStore store;
    private Map<RemoteLogSegmentId, Integer> numbers = new HashMap<>();

    /** Takes the metadata of the previous manager, as after a restart of the broker. */
    public void takeOver(Object earlier) {
        store = ((MetadataInMemory) earlier).store;
        numbers = ((MetadataInMemory) earlier).numbers;
    }

    public void load(TopicIdPartition partition) {
        store.maybeLoadPartition(partition);
        store.markInitialized(partition);
    }

    /** Returns the number of a segment in the order of copying. */
    public int number(RemoteLogSegmentMetadata segment) {
        return numbers.get(segment.remoteLogSegmentId());
    }

    public CompletableFuture<Void> addRemoteLogSegmentMetadata(RemoteLogSegmentMetadata added) {
        numbers.put(added.remoteLogSegmentId(), numbers.size());
        store.handleRemoteLogSegmentMetadata(added);
        return CompletableFuture.completedFuture(null);
    }

    public CompletableFuture<Void> updateRemoteLogSegmentMetadata(RemoteLogSegmentMetadataUpdate update) {
        store.handleRemoteLogSegmentMetadataUpdate(update);
        return CompletableFuture.completedFuture(null);
    }

    public Optional<RemoteLogSegmentMetadata> remoteLogSegmentMetadata(TopicIdPartition partition, int epoch,
            long offset) throws RemoteStorageException {
        return store.remoteLogSegmentMetadata(partition, offset, epoch);
    }

    /** From 4.0 on; older stores do not have it. */
    @SuppressWarnings("unchecked")
    public Optional<RemoteLogSegmentMetadata> nextSegmentWithTxnIndex(TopicIdPartition partition, int epoch,
            long offset) throws RemoteStorageException {
        try {
            return (Optional<RemoteLogSegmentMetadata>) store.getClass()
                .getDeclaredMethod("nextSegmentWithTxnIndex", TopicIdPartition.class, int.class, long.class)
                .invoke(store, partition, epoch, offset);
        } catch (ReflectiveOperationException thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    public Optional<Long> highestOffsetForEpoch(TopicIdPartition partition, int epoch) throws RemoteStorageException {
        return store.highestLogOffset(partition, epoch);
    }

    public CompletableFuture<Void> putRemotePartitionDeleteMetadata(RemotePartitionDeleteMetadata deletion) {
        store.handleRemotePartitionDeleteMetadata(deletion);
        return CompletableFuture.completedFuture(null);
    }

    public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition partition)
            throws RemoteStorageException {
        List<RemoteLogSegmentMetadata> all = new ArrayList<>();
        store.listRemoteLogSegments(partition).forEachRemaining(all::add);
        all.sort(Comparator.comparingInt(this::number));
        return all.iterator();
    }

    public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition partition, int epoch)
            throws RemoteStorageException {
        Map<RemoteLogSegmentId, Integer> places = new HashMap<>();
        List<RemoteLogSegmentMetadata> all = new ArrayList<>();
        Iterator<RemoteLogSegmentMetadata> listed = store.listRemoteLogSegments(partition, epoch);
        while (listed.hasNext()) {
            RemoteLogSegmentMetadata each = listed.next();
            long start = each.segmentLeaderEpochs().get(epoch);
            Optional<RemoteLogSegmentMetadata> referenced = store.remoteLogSegmentMetadata(partition, start, epoch);
            boolean first = referenced.isPresent()
                && referenced.get().remoteLogSegmentId().equals(each.remoteLogSegmentId());
            places.put(each.remoteLogSegmentId(), first ? -1 : number(each));
            all.add(each);
        }
        all.sort(Comparator.comparingLong(RemoteLogSegmentMetadata::startOffset)
            .thenComparing(each -> places.get(each.remoteLogSegmentId())));
        return all.iterator();
    }

    public void onPartitionLeadershipChanges(Set<TopicIdPartition> leaders, Set<TopicIdPartition> followers) {}

    public void onStopPartitions(Set<TopicIdPartition> partitions) {}

    public long remoteLogSize(TopicIdPartition partition, int epoch) {
        return 0;
    }

    public boolean isReady(TopicIdPartition partition) {
        return true;
    }

    /** Makes the store; up to 3.7 it has a file in the directory of the partition, which nothing reads here. */
    public void configure(Map<String, ?> properties) {
        try {
            Constructor<?> create = RemotePartitionMetadataStore.class.getDeclaredConstructors()[0];
            create.setAccessible(true);
            store = (RemotePartitionMetadataStore) (create.getParameterCount() == 0
                ? create.newInstance() : create.newInstance(Path.of((String) properties.get("log.dir"))));
        } catch (ReflectiveOperationException thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    public void close() {}
}
