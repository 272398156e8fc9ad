package conformance;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * One round of cleaning by the release's own cleaner: kafka.log.Cleaner (2.4 - 4.0), then the class of that name in
 * o.a.k.storage.internals.log. The arguments are those that a broker's LogCleaner and LogCleanerManager pass.
 */
final class LogCleaning {
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static final int BYTES_PER_SLOT = 24;
    private static final double LOAD_FACTOR = 0.9;
    private static final long FIRST_MODIFIED = 2_000_000_000_000L;
    private static final String[] COUNTS = {"mapMessagesRead", "mapBytesRead", "messagesRead", "bytesRead",
        "messagesWritten", "bytesWritten", "invalidMessagesRead"};

    private final ClassLoader loader;
    private final LogEnvironment environment;
    private final int largestMessage;
    private final Constructor<?> cleaner;
    private final Constructor<?> toClean;
    private final Constructor<?> keys;
    private final Constructor<?> throttler;
    private final Method clean;
    private final Method cleanable;
    private final Object manager;
    private final Members.Reader cleanableBytes;
    private final Members.Reader partition;
    private final Map<Integer, Object> maps = new HashMap<>();  // a broker's cleaner uses one map for all rounds
    private Members.Reader[] bounds;
    private Members.Reader[] counts;

    /** Takes the default of message.max.bytes, to which the buffers may grow. */
    LogCleaning(ClassLoader loader, LogEnvironment environment, Class<?> log, int largestMessage) throws Throwable {
        this.loader = loader;
        this.environment = environment;
        this.largestMessage = largestMessage;
        Class<?> type = Members.type(loader, STORAGE + "Cleaner", "kafka.log.Cleaner");
        cleaner = Members.constructor(type, 8);
        clean = Members.method(type, "clean", 1);
        Class<?> candidate = Members.type(loader, STORAGE + "LogToClean", "kafka.log.LogToClean");
        toClean = candidate.getDeclaredConstructors()[0];
        toClean.setAccessible(true);
        cleanableBytes = new Members.Reader(candidate, "cleanableBytes");
        keys = Members.constructor(Members.type(loader, STORAGE + "SkimpyOffsetMap", "kafka.log.SkimpyOffsetMap"), 2);
        throttler = cleaner.getParameterTypes()[5].getDeclaredConstructors()[0];
        throttler.setAccessible(true);
        Class<?> chooser = Members.type(loader, STORAGE + "LogCleanerManager", "kafka.log.LogCleanerManager$");
        cleanable = Members.method(chooser, "cleanableOffsets", 3);
        manager = chooser.getName().endsWith("$") ? chooser.getField("MODULE$").get(null) : null;
        partition = new Members.Reader(log, "topicPartition");
    }

    /** Sets the modification times of the segments' files, with a fixed distance in milliseconds. */
    static void age(File directory, List<Long> bases, long age) {
        long modified = FIRST_MODIFIED;
        for (long base : bases) {
            new File(directory, String.format("%020d.log", base)).setLastModified(modified);
            modified += age;
        }
    }

    /** Cleans; returns the next dirty offset and the counts, or nothing if a broker would not choose this log. */
    long[] clean(Object log, long checkpoint, int bufferBytes, int slots) throws Throwable {
        Object range = Members.call(cleanable, manager, log, known(checkpoint), environment.now());
        if (bounds == null)
            bounds = boundsOf(range.getClass());
        long firstDirty = bounds[0].readLong(range);
        long stop = bounds[1].readLong(range);
        Object chosen = toClean.getParameterCount() == 4
            ? Members.create(toClean, log, firstDirty, stop, false)
            : Members.create(toClean, partition.read(log), log, firstDirty, stop, false);
        if (cleanableBytes.readLong(chosen) <= 0)
            return new long[0];
        Class<?>[] wanted = cleaner.getParameterTypes();
        Object clock = environment.clock(wanted[6]);
        Object[] limit = throttler.getParameterCount() == 6
            ? new Object[] {Double.MAX_VALUE, 300L, true, "cleaner-io", "bytes", clock}
            : new Object[] {Double.MAX_VALUE, 300L, "cleaner-io", "bytes", clock};
        Object map = maps.get(slots);
        if (map == null)
            maps.put(slots, map = Members.create(keys, slots * BYTES_PER_SLOT, "MD5"));
        Object worker = Members.create(cleaner, 0, map, bufferBytes,
            largestMessage, LOAD_FACTOR, Members.create(throttler, limit), clock, environment.watched(wanted[7]));
        Object done = Members.call(clean, worker, chosen);
        boolean java = done instanceof Map.Entry<?, ?>;
        Object stats = java ? ((Map.Entry<?, ?>) done).getValue() : part(done, "_2");
        if (counts == null) {
            counts = new Members.Reader[COUNTS.length];
            for (int i = 0; i < COUNTS.length; i++)
                counts[i] = new Members.Reader(stats.getClass(), COUNTS[i]);
        }
        long[] numbers = new long[COUNTS.length + 1];
        numbers[0] = ((Number) (java ? ((Map.Entry<?, ?>) done).getKey() : part(done, "_1"))).longValue();
        for (int i = 0; i < COUNTS.length; i++)
            numbers[i + 1] = counts[i].readLong(stats);
        return numbers;
    }

    private static Object part(Object pair, String name) throws Throwable {
        return Members.call(Members.method(pair.getClass(), name, 0), pair);
    }

    /** Returns readers of the cleanable range: a pair in 2.4.0 and 2.5, an object of a separate class in other releases. */
    private static Members.Reader[] boundsOf(Class<?> type) {
        boolean pair = Members.methodOrNull(type, "firstDirtyOffset", 0) == null
            && Members.fieldOrNull(type, "firstDirtyOffset") == null;
        return new Members.Reader[] {new Members.Reader(type, pair ? "_1" : "firstDirtyOffset"),
            new Members.Reader(type, pair ? "_2" : "firstUncleanableDirtyOffset")};
    }

    private Object known(long checkpoint) throws Throwable {
        if (cleanable.getParameterTypes()[1] == Optional.class)
            return checkpoint < 0 ? Optional.empty() : Optional.of(checkpoint);
        if (checkpoint < 0)
            return Class.forName("scala.None$", true, loader).getField("MODULE$").get(null);
        return Members.create(Members.constructor(Members.type(loader, "scala.Some"), 1), checkpoint);
    }
}
