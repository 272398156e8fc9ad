package conformance;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;

/** Adapter of one release's RemoteIndexCache (3.6 and later), by reflection. */
final class KafkaCacheAdapter extends CacheAdapter {
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static final String REMOTE = "org.apache.kafka.server.log.remote.storage.";
    private final AbortedTransactions transactions = new AbortedTransactions();

    private final Constructor<?> constructor;
    private final Constructor<?> metadata;
    private final Constructor<?> segmentId;
    private final Method idOf;
    private final Object partition;
    private final Object ticker;
    private final Method resize;

    KafkaCacheAdapter(ClassLoader loader) throws Throwable {
        super(loader, StoredIndexes.kafka(loader), STORAGE + "RemoteIndexCache", "isMarkedForCleanup",
            "offsetIndex", "timeIndex", "txnIndex");
        Constructor<?> longest = null;
        for (Constructor<?> each : type.getDeclaredConstructors())
            if (longest == null || each.getParameterCount() > longest.getParameterCount())
                longest = each;
        constructor = longest;
        Class<?> id = Members.type(loader, "org.apache.kafka.common.Uuid");
        idOf = Members.method(id, "fromString", 1);
        Class<?> topicPartition = Members.type(loader, "org.apache.kafka.common.TopicPartition");
        partition = Members.create(
            Members.constructor(Members.type(loader, "org.apache.kafka.common.TopicIdPartition"), 2),
            Members.create(Members.constructor(id, 2), 7L, 7L),
            Members.create(Members.constructor(topicPartition, 2), "t", 0));
        segmentId = Members.constructor(Members.type(loader, REMOTE + "RemoteLogSegmentId"), 2);
        metadata = Members.constructor(Members.type(loader, REMOTE + "RemoteLogSegmentMetadata"), 8);
        Class<?> clock = Members.type(loader, CAFFEINE + "Ticker");
        ticker = Proxy.newProxyInstance(loader, new Class<?>[] {clock}, (proxy, method, arguments) -> now * 1_000_000);
        resize = Members.methodOrNull(type, "resizeCacheSize", 1);
    }

    @Override
    boolean countsEntries() {
        return constructor.getParameterTypes()[0] == int.class;
    }

    @Override
    Object create(String directory, long maxSize, long ttlMs) throws Throwable {
        Object size = countsEntries() ? (Object) (int) maxSize : maxSize;
        Object created = constructor.getParameterCount() == 3
            ? Members.create(constructor, size, stored.manager, directory)
            : Members.create(constructor, size, ttlMs, false, stored.manager, directory, ticker);
        Method delay = Members.methodOrNull(type, "setFileDeleteDelayMs", 1);
        if (delay != null)
            Members.call(delay, created, Integer.MAX_VALUE);
        return created;
    }

    @Override
    Object id(String text) throws Throwable {
        return Members.call(idOf, null, text);
    }

    @Override
    Object segment(String id, long start) throws Throwable {
        Object segment = Members.create(segmentId, partition, id(id));
        return Members.create(metadata, segment, start, start + 1000, 5000L, 0, 5000L, 1000, Map.of(0, start));
    }

    @Override
    long lookupOffset(String id, long start, long offset) throws Throwable {
        return ((Number) Members.call(Members.method(type, "lookupOffset", 2), cache, segment(id, start), offset))
            .longValue();
    }

    @Override
    long lookupTimestamp(String id, long start, long timestamp, long from) throws Throwable {
        Method lookup = Members.method(type, "lookupTimestamp", 3);
        return ((Number) Members.call(lookup, cache, segment(id, start), timestamp, from)).longValue();
    }

    @Override
    void aborted(Object entry, long from, long to, Reply reply) throws Throwable {
        Object index = indexes[2].read(entry);
        Object result = Members.call(Members.method(index.getClass(), "collectAbortedTxns", 2), index, from, to);
        transactions.addResult(result, reply);
    }

    @Override
    Object positionByTime(Object entry, long timestamp, long from) throws Throwable {
        return Members.call(Members.method(entryType, "lookupTimestamp", 2), entry, timestamp, from);
    }

    @Override
    void resize(long maxSize) throws Throwable {
        if (resize != null)
            Members.call(resize, cache, maxSize);
    }

    @Override
    long size(Object entry) throws Throwable {
        Method size = Members.methodOrNull(entryType, "entrySizeBytes", 0);
        return size == null ? -1 : ((Number) Members.call(size, entry)).longValue();
    }
}
