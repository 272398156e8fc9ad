package conformance;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Base class of the adapters of Kafka's RemoteIndexCache and of a fork that has kept the names of its members. */
abstract class CacheAdapter {
    static final String CAFFEINE = "com.github.benmanes.caffeine.cache.";

    /** Time limit for background threads: on a busy machine a thread may wait for a processor for many seconds. */
    private static final long QUIESCENCE_SECONDS = 25;

    final Class<?> type;
    final Class<?> entryType;
    final StoredIndexes stored;
    final Members.Reader[] indexes;
    private final Members.Reader marked;
    private final Method tidy;
    private final Method asMap;
    private final Method entryOf;
    private final Field cleanerThread;
    long now;
    Object cache;

    /** indexNames: the names of the indexes of an entry; the first two are mapped into memory. */
    CacheAdapter(ClassLoader loader, StoredIndexes stored, String typeName, String marked, String... indexNames)
        throws Throwable {
        this.stored = stored;
        type = Members.type(loader, typeName);
        entryType = Members.type(loader, typeName + "$Entry");
        this.marked = new Members.Reader(entryType, marked);
        Class<?> cacheOfEntries = Members.type(loader, CAFFEINE + "Cache");
        tidy = Members.method(cacheOfEntries, "cleanUp", 0);
        asMap = Members.method(cacheOfEntries, "asMap", 0);
        entryOf = Members.method(type, "getIndexEntry", 1);
        cleanerThread = Members.fieldOrNull(type, "cleanerThread");
        indexes = Members.readers(entryType, indexNames);
    }

    boolean isOpen() {
        return cache != null;
    }

    /** Returns true if the size of the cache is a number of entries (3.6), not of bytes. */
    abstract boolean countsEntries();

    abstract Object create(String directory, long maxSize, long ttlMs) throws Throwable;

    void open(String directory, long maxSize, long ttlMs, long now) throws Throwable {
        this.now = now;
        cache = create(directory, maxSize, ttlMs);
        if (cleanerThread != null) {  // the calling thread does its work: up to 4.0, immediately
            Thread cleaner = (Thread) cleanerThread.get(cache);
            Members.call(Members.method(cleaner.getClass(), "initiateShutdown", 0), cleaner);
            cleaner.join();  // on a busy machine it took an entry in one of 200 examples, although its shutdown had begun
        }
    }

    /** Returns the id of a segment that Kafka prints as this text. */
    abstract Object id(String text) throws Throwable;

    /** Returns the metadata of a segment. */
    abstract Object segment(String id, long start) throws Throwable;

    Object entry(String id, long start) throws Throwable {
        return Members.call(entryOf, cache, segment(id, start));
    }

    abstract long lookupOffset(String id, long start, long offset) throws Throwable;

    abstract long lookupTimestamp(String id, long start, long timestamp, long from) throws Throwable;

    abstract void aborted(Object entry, long from, long to, Reply reply) throws Throwable;

    /** Returns the entry of an entry's offset index for a timestamp. */
    abstract Object positionByTime(Object entry, long timestamp, long from) throws Throwable;

    long askHeld(Object entry, boolean byTime, long target, long from) throws Throwable {
        Object found = byTime
            ? positionByTime(entry, target, from)
            : Members.call(Members.method(entryType, "lookupOffset", 1), entry, target);
        return position(found);
    }

    static long position(Object found) throws Throwable {
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
        Members.call(Members.method(type, "removeAll", 1), cache, all);
    }

    /** Changes the maximum size; not possible in 3.6. */
    abstract void resize(long maxSize) throws Throwable;

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
        all.sort(Comparator.comparing(each -> text(each.getKey())));
        List<Long> state = new ArrayList<>();
        state.add(isClosed() ? 1L : 0L);
        state.add((long) all.size());
        for (Map.Entry<?, ?> each : all)
            add(each.getKey(), each.getValue(), state);
        return state;
    }

    /** Returns an id as Kafka prints it. */
    String text(Object id) {
        return id.toString();
    }

    /** Returns the size of an entry that counts towards the limit, in bytes; -1 if bytes do not count. */
    abstract long size(Object entry) throws Throwable;

    private void add(Object id, Object entry, List<Long> state) throws Throwable {
        Object offsets = indexes[0].read(entry);
        Object times = indexes[1].read(entry);
        Class<?> index = offsets.getClass().getSuperclass();
        state.add(new Members.Reader(id.getClass(), "getMostSignificantBits").readLong(id));
        state.add(new Members.Reader(id.getClass(), "getLeastSignificantBits").readLong(id));
        state.add(new Members.Reader(index, "baseOffset").readLong(offsets));
        state.add(new Members.Reader(index, "entries").readLong(offsets));
        state.add(new Members.Reader(index, "entries").readLong(times));
        state.add(size(entry));
        state.add((Boolean) marked.read(entry) ? 1L : 0L);
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
                for (int i = 2; i < indexes.length; i++) {
                    Object index = indexes[i].read(entry);
                    Members.call(Members.method(index.getClass(), "close", 0), index);
                }
            }
        } catch (Throwable ignored) {
            // errors of an abandoned cache do not matter
        }
        cache = null;
    }
}
