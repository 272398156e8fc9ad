package conformance;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Adapter of one release's RemoteIndexCache (3.6 and later), by reflection. */
final class CacheAdapter {
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static final String REMOTE = "org.apache.kafka.server.log.remote.storage.";
    private static final String CAFFEINE = "com.github.benmanes.caffeine.cache.";
    private final AbortedTransactions transactions = new AbortedTransactions();

    /** Time limit for background threads: on a busy machine a thread may wait for a processor for many seconds. */
    private static final long QUIESCENCE_SECONDS = 25;

    private final Class<?> type;
    private final Constructor<?> constructor;
    private final Constructor<?> uuid;
    private final Constructor<?> metadata;
    private final Constructor<?> segmentId;
    private final Method idOf;
    private final Object partition;
    private final Object ticker;
    private final Method tidy;
    private final Method asMap;
    private final Method entryOf;
    private final Method resize;
    private final StoredIndexes stored;
    private final Members.Reader[] indexes = new Members.Reader[3];
    private final Class<?> entryType;
    private final Field cleanerThread;
    private long now;
    private Object cache;

    CacheAdapter(ClassLoader loader, StoredIndexes stored) throws Throwable {
        this.stored = stored;
        type = Members.type(loader, STORAGE + "RemoteIndexCache");
        entryType = Members.type(loader, STORAGE + "RemoteIndexCache$Entry");
        Constructor<?> longest = null;
        for (Constructor<?> each : type.getDeclaredConstructors())
            if (longest == null || each.getParameterCount() > longest.getParameterCount())
                longest = each;
        constructor = longest;
        Class<?> id = Members.type(loader, "org.apache.kafka.common.Uuid");
        uuid = Members.constructor(id, 2);
        idOf = Members.method(id, "fromString", 1);
        Class<?> topicPartition = Members.type(loader, "org.apache.kafka.common.TopicPartition");
        partition = Members.create(
            Members.constructor(Members.type(loader, "org.apache.kafka.common.TopicIdPartition"), 2),
            Members.create(uuid, 7L, 7L), Members.create(Members.constructor(topicPartition, 2), "t", 0));
        segmentId = Members.constructor(Members.type(loader, REMOTE + "RemoteLogSegmentId"), 2);
        metadata = Members.constructor(Members.type(loader, REMOTE + "RemoteLogSegmentMetadata"), 8);
        Class<?> cacheOfEntries = Members.type(loader, CAFFEINE + "Cache");
        tidy = Members.method(cacheOfEntries, "cleanUp", 0);
        asMap = Members.method(cacheOfEntries, "asMap", 0);
        Class<?> clock = Members.type(loader, CAFFEINE + "Ticker");
        ticker = Proxy.newProxyInstance(loader, new Class<?>[] {clock}, (proxy, method, arguments) -> now * 1_000_000);
        entryOf = Members.method(type, "getIndexEntry", 1);
        resize = Members.methodOrNull(type, "resizeCacheSize", 1);
        cleanerThread = Members.fieldOrNull(type, "cleanerThread");
        indexes[0] = new Members.Reader(entryType, "offsetIndex");
        indexes[1] = new Members.Reader(entryType, "timeIndex");
        indexes[2] = new Members.Reader(entryType, "txnIndex");
    }

    boolean isOpen() {
        return cache != null;
    }

    /** Returns true if the size of the cache is a number of entries (3.6), not of bytes. */
    boolean countsEntries() {
        return constructor.getParameterTypes()[0] == int.class;
    }

    void open(String directory, long maxSize, long ttlMs, long now) throws Throwable {
        this.now = now;
        Object size = countsEntries() ? (Object) (int) maxSize : maxSize;
        cache = constructor.getParameterCount() == 3
            ? Members.create(constructor, size, stored.manager, directory)
            : Members.create(constructor, size, ttlMs, false, stored.manager, directory, ticker);
        Method delay = Members.methodOrNull(type, "setFileDeleteDelayMs", 1);
        if (delay != null)
            Members.call(delay, cache, Integer.MAX_VALUE);
        if (cleanerThread != null) {  // the calling thread does its work: up to 4.0, immediately
            Thread cleaner = (Thread) cleanerThread.get(cache);
            Members.call(Members.method(cleaner.getClass(), "initiateShutdown", 0), cleaner);
            cleaner.join();  // on a busy machine it took an entry in one of 200 examples, although its shutdown had begun
        }
    }

    private Object id(String text) throws Throwable {
        return Members.call(idOf, null, text);
    }

    private Object segment(String id, long start) throws Throwable {
        Object segment = Members.create(segmentId, partition, id(id));
        return Members.create(metadata, segment, start, start + 1000, 5000L, 0, 5000L, 1000, Map.of(0, start));
    }

    Object entry(String id, long start) throws Throwable {
        return Members.call(entryOf, cache, segment(id, start));
    }

    long lookupOffset(String id, long start, long offset) throws Throwable {
        return ((Number) Members.call(Members.method(type, "lookupOffset", 2), cache, segment(id, start), offset))
            .longValue();
    }

    long lookupTimestamp(String id, long start, long timestamp, long from) throws Throwable {
        Method lookup = Members.method(type, "lookupTimestamp", 3);
        return ((Number) Members.call(lookup, cache, segment(id, start), timestamp, from)).longValue();
    }

    void aborted(Object entry, long from, long to, Reply reply) throws Throwable {
        Object index = indexes[2].read(entry);
        Object result = Members.call(Members.method(index.getClass(), "collectAbortedTxns", 2), index, from, to);
        transactions.addResult(result, reply);
    }

    long askHeld(Object entry, boolean byTime, long target, long from) throws Throwable {
        Object found = byTime
            ? Members.call(Members.method(entryType, "lookupTimestamp", 2), entry, target, from)
            : Members.call(Members.method(entryType, "lookupOffset", 1), entry, target);
        return new Members.Reader(found.getClass(), "position").readLong(found);
    }

    void remove(List<String> ids) throws Throwable {
        if (ids.size() == 1) {
            Members.call(Members.method(type, "remove", 1), cache, id(ids.get(0)));
            return;
        }
        List<Object> all = new ArrayList<>();
        for (String id : ids)
            all.add(id(id));
        Members.call(Members.method(type, "removeAll", 1), cache, (Collection<?>) all);
    }

    /** Changes the maximum size; not possible in 3.6. */
    void resize(long maxSize) throws Throwable {
        if (resize != null)
            Members.call(resize, cache, maxSize);
    }

    void pass(long milliseconds) {
        now += milliseconds;
    }

    void close() throws Throwable {
        Members.call(Members.method(type, "close", 0), cache);
    }

    /** Returns the scheduler that deletes files later; null up to 4.0, or before the first removal. */
    private Object cleaningPool() throws Throwable {
        Field scheduler = Members.fieldOrNull(type, "cleanerScheduler");
        return scheduler == null ? null : Members.field(scheduler.getType(), "executor").get(scheduler.get(cache));
    }

    /** Executes the deletions that are due ten seconds after a removal. */
    void deleteRemoved() throws Throwable {
        if (cleaningPool() instanceof ScheduledThreadPoolExecutor pool)
            for (Object task : pool.getQueue().toArray())
                if (pool.getQueue().remove(task))
                    ((Runnable) task).run();
    }

    /** Executes all remaining deletions in the calling thread; several threads may call this. */
    void deleteNow() throws Throwable {
        deleteRemoved();
        if (cleanerThread == null)
            return;
        Object cleaner = cleanerThread.get(cache);
        if (!((Collection<?>) Members.field(type, "expiredIndexes").get(cache)).isEmpty())
            Members.call(Members.method(cleaner.getClass(), "doWork", 0), cleaner);
    }

    /** Waits until the threads of the caching library and of the cache are idle. */
    void settle(boolean tidies) throws Throwable {
        if (cache == null)
            return;
        if (!ForkJoinPool.commonPool().awaitQuiescence(QUIESCENCE_SECONDS, TimeUnit.SECONDS))
            throw new IllegalStateException("the threads of the caching library do not end");
        if (tidies)
            Members.call(tidy, entries());
        if (cleanerThread == null || isClosed())
            return;
        Object cleaner = cleanerThread.get(cache);
        Collection<?> queue = (Collection<?>) Members.field(type, "expiredIndexes").get(cache);
        while (!queue.isEmpty())
            Members.call(Members.method(cleaner.getClass(), "doWork", 0), cleaner);
    }

    private boolean isClosed() throws Throwable {
        return ((AtomicBoolean) Members.field(type, "isRemoteIndexCacheClosed").get(cache)).get();
    }

    private Object entries() throws Throwable {
        return Members.field(type, "internalCache").get(cache);
    }

    private Map<?, ?> byId() throws Throwable {
        return (Map<?, ?>) Members.call(asMap, entries());
    }

    /** Returns whether the cache is closed, then the fields of CacheState (Python) for each entry, by id. */
    List<Long> state() throws Throwable {
        List<Map.Entry<?, ?>> all = new ArrayList<>(byId().entrySet());
        all.sort(Comparator.comparing(each -> each.getKey().toString()));
        List<Long> state = new ArrayList<>();
        state.add(isClosed() ? 1L : 0L);
        state.add((long) all.size());
        for (Map.Entry<?, ?> each : all)
            add(each.getKey(), each.getValue(), state);
        return state;
    }

    private void add(Object id, Object entry, List<Long> state) throws Throwable {
        Object offsets = indexes[0].read(entry);
        Object times = indexes[1].read(entry);
        Class<?> index = offsets.getClass().getSuperclass();
        Method size = Members.methodOrNull(entryType, "entrySizeBytes", 0);
        state.add(new Members.Reader(id.getClass(), "getMostSignificantBits").readLong(id));
        state.add(new Members.Reader(id.getClass(), "getLeastSignificantBits").readLong(id));
        state.add(new Members.Reader(index, "baseOffset").readLong(offsets));
        state.add(new Members.Reader(index, "entries").readLong(offsets));
        state.add(new Members.Reader(index, "entries").readLong(times));
        state.add(size == null ? -1L : ((Number) Members.call(size, entry)).longValue());
        state.add((Boolean) new Members.Reader(entryType, "isMarkedForCleanup").read(entry) ? 1L : 0L);
        state.add((Boolean) new Members.Reader(entryType, "isCleanStarted").read(entry) ? 1L : 0L);
    }

    /** Releases everything as a killed process does: no file changes. */
    void abandon() {
        if (cache == null)
            return;
        try {
            Object pool = cleaningPool();
            if (pool instanceof ScheduledThreadPoolExecutor executor)
                executor.shutdownNow();
            for (Object entry : byId().values()) {
                for (int i = 0; i < 2; i++) {
                    Object index = indexes[i].read(entry);
                    Members.call(Members.method(index.getClass().getSuperclass(), "closeHandler", 0), index);
                }
                Object transactions = indexes[2].read(entry);
                Members.call(Members.method(transactions.getClass(), "close", 0), transactions);
            }
        } catch (Throwable ignored) {
            // errors of an abandoned cache do not matter
        }
        cache = null;
    }
}
