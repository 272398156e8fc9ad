package conformance;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Arguments of a segment's factory and methods: configuration, records, producer state, and so on. */
final class SegmentParts {
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static final int A_LONG_TIME_MS = 86_400_000;

    final Class<?> type;
    private final ClassLoader loader;
    private final Object clock;
    private final Method open;
    private final Class<?> configType;
    private final Map<String, Object> configs = new HashMap<>();
    private final Method readableRecords;
    private final Constructor<?> rollParams;
    private final Constructor<?> completedTxn;
    private final Constructor<?> producerState;
    private final Constructor<?> offsetPosition;
    private final Object partition;
    private final Class<?> cacheOption;
    private Object epochCache;

    SegmentParts(ClassLoader loader, LogEnvironment environment) throws Throwable {
        this.loader = loader;
        type = Members.type(loader, STORAGE + "LogSegment", "kafka.log.LogSegment");
        clock = environment.clock(Members.type(loader, "org.apache.kafka.common.utils.Time"));
        open = Members.method(type, "open", 8);
        configType = Members.type(loader, STORAGE + "LogConfig", "kafka.log.LogConfig");
        readableRecords = Members.method(Members.type(loader,
            "org.apache.kafka.common.record.internal.MemoryRecords", "org.apache.kafka.common.record.MemoryRecords"),
            "readableRecords", 1);
        rollParams = Members.constructor(Members.type(loader, STORAGE + "RollParams", "kafka.log.RollParams"), 6);
        completedTxn = Members.constructor(Members.type(loader, STORAGE + "CompletedTxn", "kafka.log.CompletedTxn"), 4);
        offsetPosition = Members.constructor(
            Members.type(loader, STORAGE + "OffsetPosition", "kafka.log.OffsetPosition"), 2);
        producerState = Members.type(loader, STORAGE + "ProducerStateManager", "kafka.log.ProducerStateManager")
            .getDeclaredConstructors()[0];
        partition = Members.create(Members.type(loader, "org.apache.kafka.common.TopicPartition")
            .getConstructor(String.class, int.class), "t", 0);
        cacheOption = Members.method(type, "recover", 2).getParameterTypes()[1];
    }

    Object open(File directory, long baseOffset, int indexInterval, int indexSize, boolean exists, int initFileSize,
                boolean preallocate, String suffix) throws Throwable {
        Object config = config(indexInterval, indexSize);
        return Members.call(open, null, directory, baseOffset, config, clock, exists, initFileSize, preallocate, suffix);
    }

    private Object config(int indexInterval, int indexSize) throws Throwable {
        String key = indexInterval + " " + indexSize;
        Object config = configs.get(key);
        if (config == null) {
            config = newConfig(Map.of(
                "index.interval.bytes", Integer.toString(indexInterval),
                "segment.index.bytes", Integer.toString(indexSize)));
            configs.put(key, config);
        }
        return config;
    }

    private Object newConfig(Map<String, String> properties) throws Throwable {
        for (Constructor<?> constructor : configType.getDeclaredConstructors())
            if (constructor.getParameterCount() == 1 && constructor.getParameterTypes()[0] == Map.class)
                return Members.create(constructor, properties);
        Object module = module(configType.getName() + "$");
        Object noOverrides = Members.call(Members.method(module.getClass(), "apply$default$2", 0), module);
        return Members.create(Members.constructor(configType, 2), properties, noOverrides);
    }

    private Object module(String name) throws Throwable {
        return Class.forName(name, true, loader).getField("MODULE$").get(null);
    }

    Object records(byte[] bytes) throws Throwable {
        return Members.call(readableRecords, null, ByteBuffer.wrap(bytes));
    }

    /** Returns an open file of records, the argument of appendFromFile. */
    Object fileRecords(File file) throws Throwable {
        Class<?> records = Members.type(loader,
            "org.apache.kafka.common.record.internal.FileRecords", "org.apache.kafka.common.record.FileRecords");
        return Members.call(records.getMethod("open", File.class, boolean.class), null, file, false);
    }

    Object rollParams(long maxSegmentMs, int maxSegmentBytes, long maxTimestamp, long maxOffset, int size, long now)
        throws Throwable {
        return Members.create(rollParams, maxSegmentMs, maxSegmentBytes, maxTimestamp, maxOffset, size, now);
    }

    Object completedTxn(long producerId, long firstOffset, long lastOffset, boolean aborted) throws Throwable {
        return Members.create(completedTxn, producerId, firstOffset, lastOffset, aborted);
    }

    Object offsetPosition(long offset, int position) throws Throwable {
        return Members.create(offsetPosition, offset, position);
    }

    /** Returns a producer state without producers. */
    Object producerState(File directory) throws Throwable {
        Class<?>[] parameters = producerState.getParameterTypes();
        Object[] arguments = new Object[parameters.length];
        for (int i = 0; i < parameters.length; i++)
            arguments[i] = switch (parameters[i].getSimpleName()) {
                case "TopicPartition" -> partition;
                case "File" -> directory;
                case "Time" -> clock;
                case "int" -> A_LONG_TIME_MS;
                case "ProducerStateManagerConfig" -> producerConfig(parameters[i]);
                default -> throw new ClassNotFoundException("a producer state has a parameter of the unknown type " + parameters[i].getName());
            };
        return Members.create(producerState, arguments);
    }

    private static Object producerConfig(Class<?> type) throws Throwable {
        Constructor<?> constructor = type.getDeclaredConstructors()[0];
        return constructor.getParameterCount() == 1
            ? Members.create(constructor, A_LONG_TIME_MS)
            : Members.create(constructor, A_LONG_TIME_MS, false);
    }

    /** Returns no epoch cache; for 4.0 and later, which need one, a cache that ignores every epoch. */
    Object noEpochCache() throws Throwable {
        if (cacheOption == Optional.class)
            return Optional.empty();
        if (cacheOption.getName().equals("scala.Option"))
            return module("scala.None$");
        if (epochCache == null)
            epochCache = fullEpochCache();
        return epochCache;
    }

    private Object fullEpochCache() throws Throwable {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field instance = unsafe.getDeclaredField("theUnsafe");
        instance.setAccessible(true);
        Object cache = unsafe.getMethod("allocateInstance", Class.class).invoke(instance.get(null), cacheOption);
        Class<?> entryType = Members.type(loader, STORAGE + "EpochEntry");
        TreeMap<Integer, Object> epochs = new TreeMap<>();
        epochs.put(Integer.MAX_VALUE,
            Members.create(Members.constructor(entryType, 2), Integer.MAX_VALUE, 0L));
        for (Field field : cacheOption.getDeclaredFields()) {
            field.setAccessible(true);
            if (field.getType() == TreeMap.class)
                field.set(cache, epochs);
            else if (ReadWriteLock.class.isAssignableFrom(field.getType()))
                field.set(cache, new ReentrantReadWriteLock());
        }
        return cache;
    }
}
