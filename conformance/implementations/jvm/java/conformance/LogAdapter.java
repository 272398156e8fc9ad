package conformance;

import java.io.File;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Adapter of kafka.log.Log, kafka.log.UnifiedLog or o.a.k.storage.internals.log.UnifiedLog, by reflection. */
final class LogAdapter {
    final LogParts parts;
    private final LogProducers producers;
    private final AppendResults results;
    private final Class<?> type;
    private final Method readableRecords;
    private final Method appendAsLeader;
    private final Class<?>[] leaderParameters;
    private final Method startVerification;
    private final Method appendAsFollower;
    private final Method fetchOffsetByTimestamp;
    private final Method truncateFully;
    private final Method incrementStart;
    private final Method read;
    private final Method roll;
    private final Method flush;
    private final Members.Reader segments;
    private final Members.Reader[] offsets = new Members.Reader[5];
    private final Object clientOrigin;
    private final Object coordinatorOrigin;
    private final Object deletion;
    private final LogEnvironment environment;
    private LogCleaning cleaning;
    final LogFetch fetches;
    private final Map<Long, Object> guards = new HashMap<>();
    private Object log;
    private LogAnswer answer;
    private Members.Reader segmentBase;
    private Members.Reader segmentSize;

    LogAdapter(ClassLoader loader, LogEnvironment environment) throws Throwable {
        this.environment = environment;
        parts = new LogParts(loader, environment);
        type = parts.type;
        producers = new LogProducers(type);
        results = new AppendResults(loader);
        readableRecords = Members.method(Members.type(loader,
            "org.apache.kafka.common.record.internal.MemoryRecords", "org.apache.kafka.common.record.MemoryRecords"),
            "readableRecords", 1);
        appendAsLeader = longest("appendAsLeader");
        leaderParameters = appendAsLeader.getParameterTypes();
        startVerification = Members.longestOrNull(type, "maybeStartTransactionVerification");
        appendAsFollower = longest("appendAsFollower");
        fetchOffsetByTimestamp = longest("fetchOffsetByTimestamp");
        truncateFully = longest("truncateFullyAndStartAt");
        incrementStart = longest("maybeIncrementLogStartOffset");
        read = longest("read");
        fetches = new LogFetch(this, type);
        roll = longest("roll");
        Method forced = Members.methodOrNull(type, "flush", 1);
        Method plain = Members.methodOrNull(type, "flush", 0);
        flush = plain != null ? plain : forced;
        segments = new Members.Reader(type, "logSegments");
        String[] names = {"logStartOffset", "logEndOffset", "highWatermark", "lastStableOffset", "recoveryPoint"};
        for (int i = 0; i < names.length; i++)
            offsets[i] = new Members.Reader(type, names[i]);
        clientOrigin = origin("Client", true);
        coordinatorOrigin = origin("Coordinator", false);
        deletion = deletion(loader);
    }

    private Method longest(String name) {
        Method found = Members.longestOrNull(type, name);
        if (found == null)
            throw new Missing(type, name, Missing.ANY);
        return found;
    }

    /** Returns the origin of an append: a flag in 2.4.0, a Scala object up to 3.4, then an enum constant. */
    private Object origin(String name, boolean fromClient) throws Throwable {
        Class<?> third = leaderParameters[2];
        if (third == boolean.class)
            return fromClient;
        if (third.isEnum())
            return constant(third, name);
        return parts.module(third.getName() + "$" + name + "$");
    }

    private static Object constant(Class<?> type, String name) {
        for (Object value : type.getEnumConstants())
            if (value.toString().equalsIgnoreCase(name) || ((Enum<?>) value).name().equalsIgnoreCase(name))
                return value;
        throw new IllegalArgumentException(type.getName() + " has no " + name);
    }

    private Object deletion(ClassLoader loader) throws Throwable {
        if (incrementStart.getParameterCount() == 1)
            return null;
        Class<?> reason = incrementStart.getParameterTypes()[1];
        return reason.isEnum() ? constant(reason, "ClientRecordDeletion")
            : parts.module("kafka.log.ClientRecordDeletion$");
    }

    /** Parses settings. words: names and values, separated by zero bytes. */
    static Map<String, String> settings(String words) {
        Map<String, String> settings = new HashMap<>();
        String[] parts = words.split("\0", -1);
        for (int i = 0; i + 1 < parts.length; i += 2)
            settings.put(parts[i], parts[i + 1]);
        return settings;
    }

    /**
     * Opens a log, and then changes its retention.ms, as a broker does. settings: the topic's configuration, and two
     * settings of the broker.
     */
    void open(File directory, Map<String, String> settings, long start, long recoveryPoint, boolean clean)
            throws Throwable {
        int segmentBytes = Integer.parseInt(settings.remove("segment.bytes"));
        int expirationMs = Integer.parseInt(settings.remove("producer.id.expiration.ms"));
        boolean verifies = !settings.remove("transaction.partition.verification.enable").equals("0");
        Object config = parts.config(settings, segmentBytes);
        settings.remove("retention.ms");
        log = parts.open(directory, parts.config(settings, segmentBytes), start, recoveryPoint, clean, expirationMs, verifies);
        Members.call(Members.longestOrNull(type, "updateConfig"), log, config);
    }

    /** Returns the open log, or null. */
    Object log() {
        return log;
    }

    private Object records(byte[] bytes) throws Throwable {
        return Members.call(readableRecords, null, ByteBuffer.wrap(bytes));
    }

    /** Begins to verify a producer's next transaction (since 3.6); returns true if Kafka returned a verification guard. */
    boolean verify(long producer, int sequence, short epoch, boolean raisesEpochs) throws Throwable {
        if (startVerification == null)
            return false;
        Object guard = startVerification.getParameterCount() == 3
            ? Members.call(startVerification, log, producer, sequence, epoch)
            : Members.call(startVerification, log, producer, sequence, epoch, raisesEpochs);
        if (guard == null || guard == sentinel(guard.getClass()))
            return false;
        guards.put(producer, guard);
        return true;
    }

    private static Object sentinel(Class<?> guard) throws Throwable {
        return guard == Object.class ? null : guard.getField("SENTINEL").get(null);
    }

    /** Forgets the verification guards and fetches of an example. */
    void forget() {
        guards.clear();
        fetches.forget();
    }

    Object appendAsLeader(byte[] bytes, int epoch, boolean fromClient) throws Throwable {
        return appendAsLeader(bytes, epoch, fromClient, null, (short) 0);
    }

    /** Appends with the last verification guard of a producer, and with a transaction version (since 4.2). */
    Object appendVerified(byte[] bytes, int epoch, short version, boolean fromClient, long producer) throws Throwable {
        return appendAsLeader(bytes, epoch, fromClient, guards.get(producer), version);
    }

    private Object appendAsLeader(byte[] bytes, int epoch, boolean fromClient, Object guard, short version)
            throws Throwable {
        Object[] arguments = new Object[leaderParameters.length];
        arguments[0] = records(bytes);
        arguments[1] = epoch;
        arguments[2] = fromClient ? clientOrigin : coordinatorOrigin;
        for (int i = 3; i < arguments.length; i++) {
            Class<?> parameter = leaderParameters[i];
            if (guard != null && parameter.isInstance(guard) && !parameter.isPrimitive())
                arguments[i] = guard;
            else
                arguments[i] = parameter == short.class ? (Object) version : leaderDefault(i);
        }
        try {
            return Members.call(appendAsLeader, log, arguments);
        } catch (Throwable thrown) {
            throw unwrapped(thrown);
        }
    }

    /** Returns the cause of a RecordValidationException: the exception that describes the rejected records. */
    private static Throwable unwrapped(Throwable thrown) throws Throwable {
        if (!thrown.getClass().getSimpleName().equals("RecordValidationException"))
            return thrown;
        Object wrapped = new Members.Reader(thrown.getClass(), "invalidException").read(thrown);
        return wrapped.getClass().getSimpleName().equals("InvalidTimestampException") ? (Throwable) wrapped : thrown;
    }

    /** Returns the default of an argument: Scala has a method for each default; in Java it is read from a shorter overload. */
    private Object leaderDefault(int argument) throws Throwable {
        Method scala = Members.methodOrNull(type, "appendAsLeader$default$" + (argument + 1), 0);
        if (scala != null)
            return Members.call(scala, log);
        Class<?> parameter = leaderParameters[argument];
        return switch (parameter.getSimpleName()) {
            case "RequestLocal" -> Members.call(Members.method(parameter, "noCaching", 0), null);
            case "VerificationGuard" -> parameter.getField("SENTINEL").get(null);
            default -> throw new ClassNotFoundException("appendAsLeader has a parameter of the unknown type " + parameter.getName());
        };
    }

    Object appendAsFollower(byte[] bytes, int epoch) throws Throwable {
        return appendAsFollower.getParameterCount() == 1 ? Members.call(appendAsFollower, log, records(bytes))
            : Members.call(appendAsFollower, log, records(bytes), epoch);
    }

    /** Adds the fields of the result of an append. */
    void addResult(Object result, Reply reply) throws Throwable {
        results.add(result, reply);
    }

    private Object nothing(Class<?> option) throws Throwable {
        return option == Optional.class ? Optional.empty() : parts.none();
    }

    void roll() throws Throwable {
        Members.call(roll, log, nothing(roll.getParameterTypes()[0]));
    }

    boolean truncateTo(long offset) throws Throwable {
        return (Boolean) Members.call(Members.method(type, "truncateTo", 1), log, offset);
    }

    void truncateFullyAndStartAt(long offset) throws Throwable {
        if (truncateFully.getParameterCount() == 1)
            Members.call(truncateFully, log, offset);
        else
            Members.call(truncateFully, log, offset, nothing(truncateFully.getParameterTypes()[1]));
    }

    void incrementStart(long offset) throws Throwable {
        long before = offsets[0].readLong(log);
        Object moves = deletion == null ? Members.call(incrementStart, log, offset)
            : Members.call(incrementStart, log, offset, deletion);
        if (moves instanceof Boolean && (Boolean) moves != before < offsets[0].readLong(log))
            throw new IllegalStateException("maybeIncrementLogStartOffset(" + offset + ") returned " + moves);
    }

    long deleteOldSegments() throws Throwable {
        return ((Number) Members.call(Members.method(type, "deleteOldSegments", 0), log)).longValue();
    }

    /**
     * Cleans the log once. arguments: the offset at which the last round ended, bytes per read, number of keys in the map,
     * milliseconds between the segments' modification times, the place at which the process is killed, and how many
     * times it reaches this place.
     */
    long[] clean(File directory, long[] arguments) throws Throwable {
        if (cleaning == null)
            cleaning = new LogCleaning(parts.loader(), environment, type, parts.defaultMessageBytes());
        List<Long> bases = new ArrayList<>();
        for (Object segment : segments())
            bases.add(base(segment));
        LogCleaning.age(directory, bases, arguments[3]);
        environment.killAt(arguments.length > 4 ? (int) arguments[4] : -1, arguments.length > 4 ? arguments[5] : 0);
        try {
            return cleaning.clean(log, arguments[0], (int) arguments[1], (int) arguments[2]);
        } finally {
            environment.killAt(-1, 0);
        }
    }

    private long base(Object segment) throws Throwable {
        if (segmentBase == null) {
            segmentBase = new Members.Reader(segment.getClass(), "baseOffset");
            segmentSize = new Members.Reader(segment.getClass(), "size");
        }
        return segmentBase.readLong(segment);
    }

    /** Returns at how many of these times the oldest transaction has been open for too long; 0 before 3.2. */
    long lateTransactions(long[] times) throws Throwable {
        Method isLate = Members.methodOrNull(type, "hasLateTransaction", 1);
        long late = 0;
        for (long time : times)
            late += isLate != null && (Boolean) Members.call(isLate, log, time) ? 1 : 0;
        return late;
    }

    /** Moves the high watermark and returns it; from 3.7 on as a follower does, to which the log returns only a change. */
    long updateHighWatermark(long offset) throws Throwable {
        Method maybe = Members.methodOrNull(type, "maybeUpdateHighWatermark", 1);
        if (maybe == null || maybe.getParameterTypes()[0] != long.class)
            return (Long) Members.call(type.getMethod("updateHighWatermark", long.class), log, offset);
        long before = offsets[2].readLong(log);
        Object changed = Options.get(Members.call(maybe, log, offset));
        return changed == null ? before : (Long) changed;
    }

    void assignEpoch(int epoch, long startOffset) throws Throwable {
        Method assign = Members.methodOrNull(type, "maybeAssignEpochStartOffset", 2);
        Members.call(assign != null ? assign : Members.method(type, "assignEpochStartOffset", 2), log, epoch, startOffset);
    }

    /** Closes the log. prepared: true to close as LogManager does at shutdown, which differs from log.close() in 4.4. */
    void close(boolean prepared) throws Throwable {
        Method prepare = Members.methodOrNull(type, "prepareActiveSegmentForClose", 0);
        if (prepared && prepare != null)
            Members.call(prepare, log);
        if (prepared && flush.getParameterCount() == 0)
            Members.call(flush, log);
        else if (prepared)
            Members.call(flush, log, true);
        Members.call(Members.method(type, "close", 0), log);
        log = null;
    }

    /** Closes files and mappings without writing. */
    void abandon() {
        try {
            Method handlers = Members.methodOrNull(type, "closeHandlers", 0);
            if (handlers != null)
                Members.call(handlers, log);
            else
                for (Object segment : segments())  // in 4.4 close() of a segment does what closeHandlers() did before
                    Members.call(Members.method(segment.getClass(), "close", 0), segment);
        } catch (Throwable ignored) {
            // errors of an abandoned log do not matter
        }
        log = null;
    }

    private List<Object> segments() throws Throwable {
        Object all = segments.read(log);
        return all instanceof Collection<?> collection ? new ArrayList<>(collection) : new ArrayList<>(Options.list(all));
    }

    /** Adds 0 for no result, or 1 and the result. */
    void fetchOffset(long target, Reply reply) throws Throwable {
        Object result = fetchOffsetByTimestamp.getParameterCount() == 1
            ? Members.call(fetchOffsetByTimestamp, log, target)
            : Members.call(fetchOffsetByTimestamp, log, target, nothing(fetchOffsetByTimestamp.getParameterTypes()[1]));
        addAnswer(answerOf(result), reply);
    }

    void addAnswer(Object found, Reply reply) throws Throwable {
        reply.add(found == null ? 0 : 1);
        if (found == null)
            return;
        if (answer == null || !answer.reads(found))
            answer = new LogAnswer(found.getClass());
        answer.add(found, reply);
    }

    /** Returns the TimestampAndOffset in the result of a lookup, or null. */
    static Object answerOf(Object result) throws Throwable {
        Method holder = Members.methodOrNull(result.getClass(), "timestampAndOffsetOpt", 0);
        return Options.get(holder == null ? result : Members.call(holder, result));
    }

    /** Returns the bytes of the first batch that a fetch from an offset returns, up to the end of the log; or no bytes. */
    byte[] read(long offset) throws Throwable {
        Object records = LogFetch.records(fetch(offset, 1, "LOG_END", true));
        int size = ((Number) Members.call(records.getClass().getMethod("sizeInBytes"), records)).intValue();
        return size == 0 ? new byte[0] : LogFetch.sent(records, size);
    }

    /** Returns what a fetch returns (FetchDataInfo); isolation: LOG_END, HIGH_WATERMARK or TXN_COMMITTED. */
    Object fetch(long offset, int maxBytes, String isolation, boolean wholeBatch) throws Throwable {
        Class<?> type = read.getParameterTypes()[2];
        Object until = type.isEnum() ? constant(type, isolation) : parts.module("kafka.server.Fetch" + switch (isolation) {
            case "LOG_END" -> "LogEnd$";
            case "HIGH_WATERMARK" -> "HighWatermark$";
            default -> "TxnCommitted$";
        });
        return Members.call(read, log, offset, maxBytes, until, wholeBatch);
    }

    /** Returns the last segment whose base offset is at most an offset; the first segment if all are above it. */
    Object segmentOf(long offset) throws Throwable {
        Object found = null;
        for (Object segment : segments())
            if (found == null || base(segment) <= offset)
                found = segment;
        return found;
    }

    /** Adds log start offset, log end offset, high watermark and LSO, as a fetch returns them. */
    void offsetSnapshot(Reply reply) throws Throwable {
        Object snapshot = Members.call(Members.method(type, "fetchOffsetSnapshot", 0), log);
        reply.add(new Members.Reader(snapshot.getClass(), "logStartOffset").readLong(snapshot));
        for (String name : new String[] {"logEndOffset", "highWatermark", "lastStableOffset"}) {
            Object metadata = new Members.Reader(snapshot.getClass(), name).read(snapshot);
            reply.add(new Members.Reader(metadata.getClass(), "messageOffset").readLong(metadata));
        }
    }

    /** Adds the epoch and the end offset that the log returns for a leader epoch; nothing if it returns none. */
    void endOffsetForEpoch(int epoch, Reply reply) throws Throwable {
        Object found = Options.get(Members.call(Members.method(type, "endOffsetForEpoch", 1), log, epoch));
        if (found == null) {
            unknownEpoch(epoch, reply);
            return;
        }
        boolean isNamedEpoch = Members.methodOrNull(found.getClass(), "epoch", 0) != null;
        reply.add(new Members.Reader(found.getClass(), isNamedEpoch ? "epoch" : "leaderEpoch").readLong(found));
        reply.add(new Members.Reader(found.getClass(), "offset").readLong(found));
    }

    /** Adds what the cache of leader epochs returns for an epoch that the log does not have, if it is not unknown to it, too. */
    private void unknownEpoch(int epoch, Reply reply) throws Throwable {
        Method cached = Members.methodOrNull(type, "leaderEpochCache", 0);
        Object cache = cached == null ? null : Members.call(cached, log);
        Method lookup = cache == null ? null : Members.methodOrNull(cache.getClass(), "endOffsetFor", 2);
        if (lookup == null)
            return;  // up to 3.9, where the log perhaps has a cache
        Map.Entry<?, ?> found = (Map.Entry<?, ?>) Members.call(lookup, cache, epoch, offsets[1].readLong(log));
        if ((Integer) found.getKey() == -1 && (Long) found.getValue() == -1)
            return;
        reply.add((Integer) found.getKey());
        reply.add((Long) found.getValue());
    }

    /** Renames the directory; from 3.3 on, a log that will be deleted does not read its checkpoints again. */
    void renameDirectory(String name, boolean deletes) throws Throwable {
        Method rename = Members.longestOrNull(type, "renameDir");
        if (rename.getParameterCount() == 1)
            Members.call(rename, log, name);
        else
            Members.call(rename, log, name, !deletes);
        Method isFuture = Members.methodOrNull(type, "isFuture", 0);
        if (isFuture != null && (Boolean) Members.call(isFuture, log) != name.endsWith("-future"))
            throw new IllegalStateException("isFuture() is wrong for a log in the directory " + name);
    }

    void delete() throws Throwable {
        Members.call(Members.method(type, "delete", 0), log);
        log = null;
    }

    /** Closes the files as a broker does whose disk has failed; 4.4 has another name for it. */
    void fail() throws Throwable {
        Method handlers = Members.methodOrNull(type, "closeHandlers", 0);
        Members.call(handlers != null ? handlers : Members.method(type, "closeQuietly", 0), log);
    }

    /** Assigns the topic id with the halves 1 and number; does nothing before 2.8. */
    void assignTopicId(long number) throws Throwable {
        Method assign = Members.methodOrNull(type, "assignTopicId", 1);
        if (assign != null)
            Members.call(assign, log, Members.create(Members.constructor(assign.getParameterTypes()[0], 2), 1L, number));
    }

    /** Adds the halves of the topic id; nothing if the log has none. 2.8 has the id zero instead of none. */
    void topicId(Reply reply) throws Throwable {
        Method topicId = Members.methodOrNull(type, "topicId", 0);
        Object found = topicId == null ? null : Members.call(topicId, log);
        if (found != null && !found.getClass().getSimpleName().equals("Uuid"))
            found = Options.get(found);
        if (found == null)
            return;
        long[] halves = {
            new Members.Reader(found.getClass(), "getMostSignificantBits").readLong(found),
            new Members.Reader(found.getClass(), "getLeastSignificantBits").readLong(found)};
        if (halves[0] == 0 && halves[1] == 0)
            return;
        for (long half : halves)
            reply.add(half);
    }

    void state(Reply reply) throws Throwable {
        for (Members.Reader offset : offsets)
            reply.add(offset.readLong(log));
        environment.checkHeard(offsets[2].readLong(log));
        List<Object> all = segments();
        reply.add(all.size());
        for (Object segment : all) {
            reply.add(base(segment));
            reply.add(segmentSize.readLong(segment));
        }
        producers.state(log, reply);
    }
}
