package findings;

import java.io.Closeable;
import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * UnifiedLog (kafka.log.Log up to 3.0) of the release on the class path, so that one test runs on Kafka 2.4 to 4.4.
 *
 * It stands for what LogTestUtils.createLog and UnifiedLogTest's helpers do in Kafka's own tests. A constructor's or
 * method's parameters differ between releases; arguments are chosen by type.
 */
public final class TestLog implements Closeable {
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static final String RECORD = "org.apache.kafka.common.record.";
    private static final String REMOTE = "remote.storage.enable";
    private static final String CLEAN = ".kafka_cleanshutdown";
    private static final int EPOCH = 0;
    private static final int EXPIRATION_MS = 86_400_000;

    private final Class<?> type;
    private final Object log;

    private TestLog(Class<?> type, Object log) {
        this.type = type;
        this.log = log;
    }

    /** Opens a log as a broker does after a clean shutdown. */
    public static TestLog open(File dir, Map<String, String> config) throws Throwable {
        return open(dir, config, 0, Long.MAX_VALUE, true);
    }

    /** Opens a log as a broker does after a crash, with nothing flushed. */
    public static TestLog recover(File dir, Map<String, String> config) throws Throwable {
        return open(dir, config, 0, 0, false);
    }

    private static TestLog open(File dir, Map<String, String> config, long start, long recoveryPoint, boolean clean)
            throws Throwable {
        Class<?> type = null;
        Method create = null;
        for (String name : new String[] {STORAGE + "UnifiedLog", "kafka.log.UnifiedLog", "kafka.log.Log"}) {
            type = classOrNull(name);
            create = type == null ? null : factory(type);
            if (create != null)
                break;
        }
        Class<?>[] parameters = create.getParameterTypes();
        Object[] arguments = new Object[parameters.length];
        boolean told = false;
        int longs = 0;
        for (int i = 0; i < parameters.length; i++) {
            if (parameters[i] == File.class)
                arguments[i] = dir;
            else if (parameters[i] == long.class)
                arguments[i] = longs++ == 0 ? start : recoveryPoint;
            else if (parameters[i] == int.class)
                arguments[i] = EXPIRATION_MS;
            else if (parameters[i] == boolean.class) {
                arguments[i] = told ? config.containsKey(REMOTE) : clean;
                told = true;
            } else
                arguments[i] = part(parameters[i], config);
        }
        File marker = new File(dir.getParentFile(), CLEAN);
        if (clean && !told)  // up to 2.7 a log looks for the file itself
            marker.createNewFile();
        try {
            return new TestLog(type, call(create, null, arguments));
        } finally {
            marker.delete();
        }
    }

    private static Method factory(Class<?> log) {
        Method found = null;
        for (Method method : log.getDeclaredMethods())
            if (Modifier.isStatic(method.getModifiers()) && method.getReturnType() == log
                    && (method.getName().equals("create") || method.getName().equals("apply"))
                    && (found == null || method.getParameterCount() > found.getParameterCount()))
                found = method;
        return found;
    }

    static Object part(Class<?> parameter, Map<String, String> config) throws Throwable {
        switch (parameter.getSimpleName()) {
            case "LogConfig":
                return logConfig(parameter, config);
            case "Option":
                return module("scala.None$");
            case "Optional":
                return Optional.empty();
            case "ConcurrentMap":
                return new ConcurrentHashMap<>();
            case "Time":
                return parameter.getField("SYSTEM").get(null);
            case "BrokerTopicStats":
                for (Constructor<?> each : parameter.getDeclaredConstructors())
                    if (each.getParameterCount() == 0)
                        return each.newInstance();
                Constructor<?> only = parameter.getDeclaredConstructors()[0];
                boolean flag = only.getParameterTypes()[0] == boolean.class;
                return only.newInstance(flag ? (Object) false : Optional.empty());
            case "LogDirFailureChannel":
                return parameter.getConstructor(int.class).newInstance(1);
            case "ProducerStateManagerConfig":
                Constructor<?> constructor = parameter.getDeclaredConstructors()[0];
                return constructor.getParameterCount() == 1
                    ? constructor.newInstance(EXPIRATION_MS)
                    : constructor.newInstance(EXPIRATION_MS, false);
            default:  // a Scheduler whose tasks never run, a listener that does nothing
                return Proxy.newProxyInstance(TestLog.class.getClassLoader(), new Class<?>[] {parameter},
                    TestLog::nothing);
        }
    }

    private static Object nothing(Object proxy, Method method, Object[] arguments) throws Throwable {
        if (method.isDefault())
            return InvocationHandler.invokeDefault(proxy, method, arguments);
        return switch (method.getName()) {
            case "hashCode" -> System.identityHashCode(proxy);
            case "equals" -> proxy == arguments[0];
            case "toString" -> method.getDeclaringClass().getSimpleName();
            default -> {
                Class<?> returned = method.getReturnType();
                yield returned == boolean.class ? (Object) false
                    : returned.isInterface() ? Proxy.newProxyInstance(TestLog.class.getClassLoader(),
                        new Class<?>[] {returned}, TestLog::nothing)
                    : null;
            }
        };
    }

    private static Object logConfig(Class<?> type, Map<String, String> config) throws Throwable {
        for (Constructor<?> constructor : type.getDeclaredConstructors())
            if (constructor.getParameterCount() == 1 && constructor.getParameterTypes()[0] == Map.class)
                return call(constructor, new HashMap<>(config));
        Object module = module(type.getName() + "$");
        Object none = call(method(module.getClass(), "apply$default$2", 0), module);
        for (Constructor<?> constructor : type.getDeclaredConstructors())
            if (constructor.getParameterCount() == 2)
                return call(constructor, new HashMap<>(config), none);
        throw new IllegalStateException(type.getName());
    }

    /** Appends one batch as the leader, with a record for each timestamp. */
    public void append(long... timestamps) throws Throwable {
        asLeader(records(timestamps), false);
    }

    /** Appends a batch as the leader, byte by byte as a producer sent it. */
    public void appendBytes(ByteBuffer batch) throws Throwable {
        asLeader(call(method(recordClass("MemoryRecords"), "readableRecords", 1), null, batch), false);
    }

    /** The bytes of an uncompressed batch with a record for each timestamp. */
    public static ByteBuffer batch(long... timestamps) throws Throwable {
        return bytes(records(timestamps)).duplicate();
    }

    /** Appends one batch of a transaction as the leader, with a record for each timestamp. */
    public void appendTransactional(long producerId, int sequence, long... timestamps) throws Throwable {
        Class<?> records = recordClass("MemoryRecords");
        for (Method method : records.getMethods()) {
            Class<?>[] parameters = method.getParameterTypes();
            if (method.getName().equals("withTransactionalRecords") && parameters.length == 5) {
                Object none = uncompressed(parameters[0]);
                asLeader(call(method, null, none, producerId, (short) 0, sequence, simple(timestamps)), false);
                return;
            }
        }
        throw new IllegalStateException("withTransactionalRecords");
    }

    private void asLeader(Object records, boolean coordinator) throws Throwable {
        Method append = longest("appendAsLeader");
        Class<?>[] parameters = append.getParameterTypes();
        Object[] arguments = new Object[parameters.length];
        arguments[0] = records;
        arguments[1] = EPOCH;
        arguments[2] = origin(parameters[2], coordinator ? "Coordinator" : "Client", !coordinator);
        for (int i = 3; i < parameters.length; i++) {
            Method scala = methodOrNull(type, "appendAsLeader$default$" + (i + 1), 0);
            if (scala != null)
                arguments[i] = call(scala, log);
            else if (parameters[i].getSimpleName().equals("RequestLocal"))
                arguments[i] = call(method(parameters[i], "noCaching", 0), null);
            else if (parameters[i].getSimpleName().equals("VerificationGuard"))
                arguments[i] = parameters[i].getField("SENTINEL").get(null);
            else
                arguments[i] = (short) 0;
        }
        call(append, log, arguments);
    }

    private static Object origin(Class<?> type, String name, boolean fromClient) throws Throwable {
        if (type == boolean.class)
            return fromClient;
        if (!type.isEnum())
            return module(type.getName() + "$" + name + "$");
        return constant(type, name);
    }

    /** Appends, as one fetch of a follower, batches of one record each, with these offsets and timestamps. */
    public void appendAsFollower(long firstOffset, long... timestamps) throws Throwable {
        ByteBuffer buffer = ByteBuffer.allocate(200 * timestamps.length);
        for (int i = 0; i < timestamps.length; i++) {
            ByteBuffer batch = bytes(records(timestamps[i]));
            int start = buffer.position();
            buffer.put(batch.duplicate());
            buffer.putLong(start, firstOffset + i);  // neither the base offset nor
            buffer.putInt(start + 12, EPOCH);  // the leader epoch is covered by the checksum
        }
        buffer.flip();
        Object records = call(method(recordClass("MemoryRecords"), "readableRecords", 1), null, buffer);
        Method append = longest("appendAsFollower");
        if (append.getParameterCount() == 1)
            call(append, log, records);
        else
            call(append, log, records, EPOCH);
    }

    private static ByteBuffer bytes(Object records) throws Throwable {
        return (ByteBuffer) call(method(records.getClass(), "buffer", 0), records);
    }

    private static Object records(long... timestamps) throws Throwable {
        for (Method method : recordClass("MemoryRecords").getMethods()) {
            Class<?>[] parameters = method.getParameterTypes();
            if (method.getName().equals("withRecords") && parameters.length == 2 && parameters[1].isArray())
                return call(method, null, uncompressed(parameters[0]), simple(timestamps));
        }
        throw new IllegalStateException("withRecords");
    }

    private static Object uncompressed(Class<?> type) throws Throwable {
        return type.isEnum() ? constant(type, "NONE") : field(type, "NONE").get(null);
    }

    private static Object simple(long... timestamps) throws Throwable {
        Class<?> record = recordClass("SimpleRecord");
        Object array = Array.newInstance(record, timestamps.length);
        for (int i = 0; i < timestamps.length; i++)
            Array.set(array, i, record.getConstructor(long.class, byte[].class).newInstance(timestamps[i], new byte[8]));
        return array;
    }

    public void roll() throws Throwable {
        Method roll = longest("roll");
        call(roll, log, part(roll.getParameterTypes()[0], Map.of()));
    }

    /** Does what a DeleteRecords request does: everything so far is replicated, and the log start offset moves. */
    public void deleteRecordsBefore(long offset) throws Throwable {
        replicated();
        Method increment = longest("maybeIncrementLogStartOffset");
        if (increment.getParameterCount() == 1) {
            call(increment, log, offset);
            return;
        }
        Class<?> reason = increment.getParameterTypes()[1];
        call(increment, log, offset, reason.isEnum()
            ? constant(reason, "ClientRecordDeletion") : module("kafka.log.ClientRecordDeletion$"));
    }

    /** Deletes what retention says, and returns the number of segments that went. */
    public int deleteOldSegments() throws Throwable {
        replicated();
        return ((Number) call(method(type, "deleteOldSegments", 0), log)).intValue();
    }

    /** Sets the high watermark, as a follower does to its leader's, and asks for it as a fetch does. */
    public long fetchedHighWatermark(long offset) throws Throwable {
        call(type.getMethod("updateHighWatermark", long.class), log, offset);
        Object snapshot = call(method(type, "fetchOffsetSnapshot", 0), log);
        Method read = methodOrNull(snapshot.getClass(), "highWatermark", 0);
        return number(read != null ? call(read, snapshot) : field(snapshot.getClass(), "highWatermark").get(snapshot),
            "messageOffset");
    }

    /** Raises the high watermark to the log end offset. */
    public void replicated() throws Throwable {
        call(type.getMethod("updateHighWatermark", long.class), log, logEndOffset());
    }

    /** The offset that ListOffsets answers for a timestamp; -1 for none. */
    public long offsetForTimestamp(long timestamp) throws Throwable {
        return offsetForTimestamp(timestamp, null);
    }

    /** The offset that ListOffsets answers for a timestamp, with a RemoteLogManager or null; -1 for none. */
    long offsetForTimestamp(long timestamp, Object remote) throws Throwable {
        Method fetch = longest("fetchOffsetByTimestamp");
        Object result = fetch.getParameterCount() == 1
            ? call(fetch, log, timestamp)
            : call(fetch, log, timestamp, remote == null ? part(fetch.getParameterTypes()[1], Map.of())
                : fetch.getParameterTypes()[1] == Optional.class ? Optional.of(remote)
                : Class.forName("scala.Option").getMethod("apply", Object.class).invoke(null, remote));
        Method holder = methodOrNull(result.getClass(), "timestampAndOffsetOpt", 0);
        Object option = holder == null ? result : call(holder, result);
        Method pending = methodOrNull(result.getClass(), "futureHolderOpt", 0);
        if (pending != null && call(pending, result) instanceof Optional<?> future && future.isPresent())
            option = answer(future.get());
        boolean empty = (Boolean) call(method(option.getClass(), "isEmpty", 0), option);
        return empty ? -1 : number(call(method(option.getClass(), "get", 0), option), "offset");
    }

    /** What a lookup in remote storage answers in the end. */
    private static Object answer(Object holder) throws Throwable {
        Object future = call(method(holder.getClass(), "taskFuture", 0), holder);
        Object result = ((java.util.concurrent.Future<?>) future).get();
        return call(method(result.getClass(), "timestampAndOffset", 0), result);
    }

    /** Opens a log that starts at an offset, empty or not. */
    public static TestLog openAt(File dir, Map<String, String> config, long start) throws Throwable {
        return open(dir, config, start, Long.MAX_VALUE, true);
    }

    /** The log itself. */
    Object unwrap() {
        return log;
    }

    /** Its LeaderEpochFileCache. */
    Object leaderEpochs() throws Throwable {
        Object cache = call(method(type, "leaderEpochCache", 0), log);
        return cache.getClass().getSimpleName().equals("Some") ? call(method(cache.getClass(), "get", 0), cache) : cache;
    }

    public long logStartOffset() throws Throwable {
        return number(log, "logStartOffset");
    }

    public long logEndOffset() throws Throwable {
        return number(log, "logEndOffset");
    }

    public long lastStableOffset() throws Throwable {
        return number(log, "lastStableOffset");
    }

    /** The base offsets of the segments. */
    public List<Long> baseOffsets() throws Throwable {
        List<Long> bases = new ArrayList<>();
        for (Object segment : segments())
            bases.add(number(segment, "baseOffset"));
        return bases;
    }

    /** The size of the records of the last segment. */
    public long lastSegmentSize() throws Throwable {
        return number(lastRecords(), "sizeInBytes");
    }

    /** Reads the last segment into a buffer, as the loader of a coordinator does. */
    public void readLastSegment(ByteBuffer buffer) throws Throwable {
        Object records = lastRecords();
        call(method(records.getClass(), "readInto", 2), records, buffer, 0);
    }

    private Object lastRecords() throws Throwable {
        List<Object> all = segments();
        Object segment = all.get(all.size() - 1);
        return call(method(segment.getClass(), "log", 0), segment);
    }

    private List<Object> segments() throws Throwable {
        Object all = call(method(type, "logSegments", 0), log);
        if (all instanceof Collection<?> collection)
            return new ArrayList<>(collection);
        List<Object> result = new ArrayList<>();
        Object iterator = call(method(all.getClass(), "iterator", 0), all);
        while ((Boolean) call(method(iterator.getClass(), "hasNext", 0), iterator))
            result.add(call(method(iterator.getClass(), "next", 0), iterator));
        return result;
    }

    /** Closes the log as a clean shutdown does. */
    @Override
    public void close() {
        try {
            Method prepare = methodOrNull(type, "prepareActiveSegmentForClose", 0);  // since 4.4
            if (prepare != null)
                call(prepare, log);
            Method flush = methodOrNull(type, "flush", 0);
            if (flush != null)
                call(flush, log);
            else
                call(method(type, "flush", 1), log, true);
            call(method(type, "close", 0), log);
        } catch (RuntimeException | Error thrown) {
            throw thrown;
        } catch (Throwable thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    /** Lets go of the files as a killed process does: nothing is written. */
    public void kill() throws Throwable {
        Method handlers = methodOrNull(type, "closeHandlers", 0);
        if (handlers != null) {
            call(handlers, log);
            return;
        }
        for (Object segment : segments())  // in 4.4 a segment's close() is what closeHandlers() was
            call(method(segment.getClass(), "close", 0), segment);
    }

    private Method longest(String name) {
        Method found = null;
        for (Method method : type.getDeclaredMethods())
            if (method.getName().equals(name) && !method.isBridge()
                    && (found == null || method.getParameterCount() > found.getParameterCount()))
                found = method;
        found.setAccessible(true);
        return found;
    }

    private static Class<?> recordClass(String name) throws ClassNotFoundException {
        Class<?> found = classOrNull(RECORD + "internal." + name);  // since 4.3
        return found != null ? found : Class.forName(RECORD + name);
    }

    static Class<?> classOrNull(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException notInThisRelease) {
            return null;
        }
    }

    private static Object module(String name) throws Throwable {
        return Class.forName(name).getField("MODULE$").get(null);
    }

    private static Object constant(Class<?> type, String name) {
        for (Object value : type.getEnumConstants())
            if (((Enum<?>) value).name().replace("_", "").equalsIgnoreCase(name) || value.toString().equals(name))
                return value;
        throw new IllegalArgumentException(type.getName() + " has no " + name);
    }

    static long number(Object target, String name) throws Throwable {
        Method method = methodOrNull(target.getClass(), name, 0);
        return ((Number) (method != null ? call(method, target) : field(target.getClass(), name).get(target)))
            .longValue();
    }

    private static Field field(Class<?> type, String name) throws NoSuchFieldException {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    private static Method method(Class<?> type, String name, int parameters) {
        Method found = methodOrNull(type, name, parameters);
        if (found == null)
            throw new IllegalStateException(type.getName() + " has no " + name + " of " + parameters + " parameters");
        return found;
    }

    private static Method methodOrNull(Class<?> type, String name, int parameters) {
        for (Class<?> at = type; at != null; at = at.getSuperclass())
            for (Method method : at.getDeclaredMethods())
                if (method.getName().equals(name) && method.getParameterCount() == parameters && !method.isBridge()) {
                    if (!at.getName().startsWith("java."))  // Optional: its methods are public
                        method.setAccessible(true);
                    return method;
                }
        return null;
    }

    static Object call(Method method, Object target, Object... arguments) throws Throwable {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    static Object call(Constructor<?> constructor, Object... arguments) throws Throwable {
        try {
            return constructor.newInstance(arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }
}
