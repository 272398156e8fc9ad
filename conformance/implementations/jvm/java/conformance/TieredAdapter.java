package conformance;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentMap;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.zip.CRC32;

/**
 * Adapter of one release's RemoteLogManager (3.6 and later), with LocalTieredStorage and a metadata manager in memory. Its
 * tasks and its lookups by time run in the calling thread; a broker runs them in thread pools.
 */
final class TieredAdapter {
    private static final String STORAGE = "org.apache.kafka.server.log.remote.storage.";
    private static final String FAILING = "org.apache.kafka.server.log.remote.metadata.storage.FailingStorage";
    private static final String METADATA = "org.apache.kafka.server.log.remote.metadata.storage.MetadataInMemory";
    private static final String[] SUFFIXES =
        {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".leader_epoch_checkpoint"};
    /** A largest timestamp above this one is the modification time of a file. */
    private static final long LATE = 1L << 40;
    private static final String TIERS = "kafka-tiered-storage";

    final LogAdapter logs;
    private final ClassLoader loader;
    private final LogEnvironment environment;
    private final Class<?> manager;
    private final Constructor<?> create;
    private final Object partition;
    private final Object topicPartition;
    private final Object topicId;
    private final Map<Object, Long> contents = new HashMap<>();
    private Object metrics;
    private Object remote;
    private Object metadata;
    private Object copying;
    private Object expiring;
    private Object following;
    private File files;
    private final Method fetch;
    private Object reader;

    TieredAdapter(ClassLoader loader, LogEnvironment environment) throws Throwable {
        this.loader = loader;
        this.environment = environment;
        logs = new LogAdapter(loader, environment);
        logs.parts.tiered = true;
        manager = Members.type(loader, STORAGE + "RemoteLogManager", "kafka.log.remote.RemoteLogManager");
        Constructor<?> longest = null;
        for (Constructor<?> each : manager.getDeclaredConstructors())
            if (longest == null || each.getParameterCount() > longest.getParameterCount())
                longest = each;
        create = longest;
        fetch = Members.longestOrNull(logs.parts.type, "fetchOffsetByTimestamp");
        Class<?> id = Members.type(loader, "org.apache.kafka.common.Uuid");
        topicId = Members.create(Members.constructor(id, 2), 7L, 7L);
        topicPartition = Members.create(
            Members.constructor(Members.type(loader, "org.apache.kafka.common.TopicPartition"), 2), "t", 0);
        partition = Members.create(
            Members.constructor(Members.type(loader, "org.apache.kafka.common.TopicIdPartition"), 2), topicId,
            topicPartition);
        failStorage(0);  // the storage is the one of another adapter with this loader
    }

    /** Makes operations of the storage fail; 0 ends it. */
    void failStorage(long what) throws Throwable {
        Members.field(Members.type(loader, FAILING), "failing").setInt(null, (int) what);
    }

    /** Forgets the metadata and the failures of the last example. */
    void forget() throws Throwable {
        failStorage(0);
        metadata = null;
        contents.clear();
    }

    void open(File directory, Map<String, String> settings, long start, long recoveryPoint, boolean clean)
            throws Throwable {
        logs.open(directory, settings, start, recoveryPoint, clean);
        files = new File(directory.getParentFile(), TIERS);
        remote = newManager(directory.getParentFile());
        reader = fetch.getParameterTypes()[1] == Optional.class ? Optional.of(reader()) : some(remote);
        Object made = field(manager, "remoteLogMetadataManager").read(remote);
        if (metadata == null)
            Members.call(Members.method(made.getClass(), "load", 1), made, partition);
        else
            Members.call(Members.method(made.getClass(), "takeOver", 1), made, metadata);
        metadata = made;
        @SuppressWarnings("unchecked")
        ConcurrentMap<Object, Object> ids =
            (ConcurrentMap<Object, Object>) Members.field(manager, "topicIdByPartitionMap").get(remote);
        ids.put(topicPartition, topicId);
        renew();
    }

    private static Members.Reader field(Class<?> type, String name) {
        return new Members.Reader(type, name);
    }

    private Object newManager(File directory) throws Throwable {
        Class<?>[] parameters = create.getParameterTypes();
        Object[] arguments = new Object[parameters.length];
        int texts = 0;
        for (int i = 0; i < arguments.length; i++) {
            Class<?> parameter = parameters[i];
            if (parameter == int.class)
                arguments[i] = 1;
            else if (parameter == String.class)
                arguments[i] = texts++ == 0 ? directory.getPath() : "cluster";
            else if (parameter == Function.class)
                arguments[i] = (Function<Object, Object>) ignored -> Optional.ofNullable(logs.log());
            else if (parameter == BiConsumer.class)
                arguments[i] = (BiConsumer<Object, Object>) (ignored, start) -> moveStart((Long) start);
            else if (parameter == Optional.class)
                arguments[i] = Optional.empty();
            else
                arguments[i] = part(parameter, directory);
        }
        Object made = Members.create(create, arguments);
        Method configure = Members.methodOrNull(manager, "startup", 0);  // up to 4.0 the constructor does not configure the plugins
        if (configure != null)
            Members.call(configure, made);
        return made;
    }

    private Object part(Class<?> parameter, File directory) throws Throwable {
        return switch (parameter.getSimpleName()) {
            case "RemoteLogManagerConfig", "KafkaConfig" -> config(parameter, directory);
            case "Time" -> environment.clock(parameter);
            case "BrokerTopicStats" -> logs.parts.topicStats(parameter);
            case "Metrics" -> {
                if (metrics == null)
                    metrics = Members.create(Members.constructor(parameter, 0));
                yield metrics;
            }
            default -> throw new ClassNotFoundException("RemoteLogManager has a parameter of the unknown type " + parameter.getName());
        };
    }

    private Object config(Class<?> type, File directory) throws Throwable {
        Map<String, String> properties = new HashMap<>();
        properties.put("remote.log.storage.system.enable", "true");
        properties.put("remote.log.storage.manager.class.name", FAILING);
        properties.put("remote.log.storage.manager.impl.prefix", "rsm.config.");
        properties.put("rsm.config.dir", directory.getPath());
        properties.put("remote.log.metadata.manager.class.name", METADATA);
        properties.put("remote.log.metadata.manager.impl.prefix", "rlmm.config.");
        properties.put("remote.log.metadata.manager.listener.name", "PLAINTEXT");
        if (type.getSimpleName().equals("KafkaConfig"))
            return logs.parts.brokerConfig(properties);
        Class<?> definition = Members.type(loader, "org.apache.kafka.common.config.ConfigDef");
        Class<?> parsed = Members.type(loader, "org.apache.kafka.common.config.AbstractConfig");
        Method define = Members.methodOrNull(type, "configDef", 0);
        Object defined = define == null ? Members.field(type, "CONFIG_DEF").get(null) : Members.call(define, null);
        Constructor<?> parse = parsed.getConstructor(definition, Map.class, boolean.class);
        return Members.create(Members.constructor(type, 1), Members.create(parse, defined, properties, false));
    }

    /** Moves the log start offset, as a broker does after the first copy or an expiration. */
    private void moveStart(long start) {
        Object log = logs.log();
        try {
            Members.call(Members.method(log.getClass(), "updateLogStartOffsetFromRemoteTier", 1), log, start);
        } catch (RuntimeException | Error thrown) {
            throw thrown;
        } catch (Throwable thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    /** Creates new tasks, as if the broker had become the leader. */
    void renew() throws Throwable {
        if (Members.fieldOrNull(manager, "followerRLMTasks") == null) {  // up to 3.8, one task for all
            copying = expiring = task("RLMTask", remote, partition, 128);
            Members.call(Members.method(copying.getClass(), "convertToLeader", 1), copying, 0);
            following = task("RLMTask", remote, partition, 128);
            return;
        }
        copying = task("RLMCopyTask", remote, partition, 128);
        expiring = task("RLMExpirationTask", remote, partition);
        following = task("RLMFollowerTask", remote, partition);
    }

    private Object task(String name, Object... arguments) throws Throwable {
        Class<?> type = Members.type(loader, manager.getName() + "$" + name);
        return Members.create(Members.constructor(type, arguments.length), arguments);
    }

    void copy() throws Throwable {
        Members.call(Members.method(copying.getClass(), "copyLogSegmentsToRemote", 1), copying, logs.log());
    }

    void expire() throws Throwable {
        if (copying == expiring)
            Members.call(Members.method(expiring.getClass(), "cleanupExpiredRemoteLogSegments", 0), expiring);
        else
            Members.call(Members.method(expiring.getClass(), "execute", 1), expiring, logs.log());
    }

    void follow() throws Throwable {
        if (copying == expiring)
            ((Runnable) following).run();
        else
            Members.call(Members.method(following.getClass(), "execute", 1), following, logs.log());
    }

    /** Adds 0 for no result, or 1 and the result. */
    void fetchOffset(long target, Reply reply) throws Throwable {
        logs.addAnswer(answerOf(Members.call(fetch, logs.log(), target, reader)), reply);
    }

    /** Adds offset, base and position of the first batch, size and checksum of all, and the aborted transactions. */
    void fetch(long offset, int maxBytes, boolean atLeastOne, boolean committed, Reply reply) throws Throwable {
        String logs = "org.apache.kafka.storage.internals.log.";
        Constructor<?> create = null;
        for (Constructor<?> each : Members.type(loader, logs + "RemoteStorageFetchInfo").getDeclaredConstructors())
            create = each;
        Class<?>[] parameters = create.getParameterTypes();
        Object[] arguments = new Object[parameters.length];
        for (int i = 0; i < arguments.length; i++)
            arguments[i] = switch (parameters[i].getSimpleName()) {
                case "int" -> maxBytes;
                case "boolean" -> i == 1 && atLeastOne;
                case "TopicPartition" -> topicPartition;
                case "TopicIdPartition" -> partition;
                case "PartitionData" -> Members.create(
                    Members.constructor(parameters[i], 5), topicId, offset, 0L, maxBytes, Optional.empty());
                default -> parameters[i].getEnumConstants()[committed ? 2 : 1];
            };
        Object found = Members.call(Members.method(manager, "read", 1), remote, Members.create(create, arguments));
        Object at = field(found.getClass(), "fetchOffsetMetadata").read(found);
        reply.add(field(at.getClass(), "messageOffset").readLong(at));
        reply.add(field(at.getClass(), "segmentBaseOffset").readLong(at));
        reply.add(field(at.getClass(), "relativePositionInSegment").readLong(at));
        Object records = field(found.getClass(), "records").read(found);
        ByteBuffer content = ((ByteBuffer) Members.call(Members.method(records.getClass(), "buffer", 0), records));
        CRC32 sum = new CRC32();
        reply.add(content.remaining());
        sum.update(content.duplicate());
        reply.add(sum.getValue());
        List<?> aborted = (List<?>) Options.get(field(found.getClass(), "abortedTransactions").read(found));
        reply.add(aborted == null ? -1 : aborted.size());
        List<long[]> all = new ArrayList<>();
        for (Object each : aborted == null ? List.of() : aborted)
            all.add(new long[] {field(each.getClass(), "producerId").readLong(each),
                field(each.getClass(), "firstOffset").readLong(each)});
        all.sort(Comparator.<long[]>comparingLong(each -> each[0]).thenComparingLong(each -> each[1]));
        for (long[] each : all) {
            reply.add(each[0]);
            reply.add(each[1]);
        }
    }

    private Object some(Object value) throws Throwable {
        return Members.create(Members.constructor(Members.type(loader, "scala.Some"), 1), value);
    }

    private Object answerOf(Object result) throws Throwable {
        Method pending = Members.methodOrNull(result.getClass(), "futureHolderOpt", 0);
        Object holder = pending == null ? null : Options.get(Members.call(pending, result));
        if (holder == null)
            return LogAdapter.answerOf(result);
        Object done = ((CompletableFuture<?>) field(holder.getClass(), "taskFuture").read(holder)).get();
        Object exception = Options.get(outcome(done, "exception", "left"));
        if (exception != null)
            throw (Throwable) exception;
        return Options.get(outcome(done, "timestampAndOffset", "right"));
    }

    private static Object outcome(Object done, String name, String other) throws Throwable {
        boolean has = Members.methodOrNull(done.getClass(), name, 0) != null
            || Members.fieldOrNull(done.getClass(), name) != null;
        return field(done.getClass(), has ? name : other).read(done);
    }

    /** Returns an AsyncOffsetReader that reads like RemoteLogManager, but in the calling thread (from 4.1 on). */
    private Object reader() {
        Class<?> type = Members.type(loader, "org.apache.kafka.storage.internals.log.AsyncOffsetReader");
        Class<?> task = Members.type(loader, STORAGE + "RemoteLogOffsetReader");
        return Proxy.newProxyInstance(loader, new Class<?>[] {type}, (proxy, method, arguments) -> {
            if (!method.getName().equals("asyncOffsetRead"))
                return method.getName().equals("hashCode") ? (Object) 0 : null;
            CompletableFuture<Object> result = new CompletableFuture<>();
            Consumer<Object> callback = result::complete;
            Object made = Members.create(Members.constructor(task, 7), remote, arguments[0], arguments[1],
                arguments[2], arguments[3], arguments[4], callback);
            Members.call(Members.method(task, "call", 0), made);
            return Members.create(Members.constructor(method.getReturnType(), 2), result, result);
        });
    }

    /** Adds the start of the local log, the highest remote offset, and all remote segments in the order of copying. */
    void state(Reply reply) throws Throwable {
        Object log = logs.log();
        reply.add(field(log.getClass(), "localLogStartOffset").readLong(log));
        reply.add(field(log.getClass(), "highestOffsetInRemoteStorage").readLong(log));
        Iterator<?> all = (Iterator<?>) Members.call(
            Members.method(metadata.getClass(), "listRemoteLogSegments", 1), metadata, partition);
        int at = reply.mark();
        reply.add(0);
        int count = 0;
        for (; all.hasNext(); count++)
            add(all.next(), reply);
        reply.replace(at, count);
    }

    private void add(Object segment, Reply reply) throws Throwable {
        Class<?> type = segment.getClass();
        Enum<?> state = (Enum<?>) field(type, "state").read(segment);
        long latest = field(type, "maxTimestampMs").readLong(segment);
        reply.add(((Number) Members.call(Members.method(metadata.getClass(), "number", 1), metadata, segment))
            .longValue());
        reply.add(field(type, "startOffset").readLong(segment));
        reply.add(field(type, "endOffset").readLong(segment));
        reply.add(state.ordinal());
        reply.add(latest > LATE ? -1 : latest);
        reply.add(field(type, "segmentSizeInBytes").readLong(segment));
        Method empty = Members.methodOrNull(type, "isTxnIdxEmpty", 0);
        reply.add(empty != null && (Boolean) Members.call(empty, segment) ? 1 : 0);
        Map<?, ?> epochs = (Map<?, ?>) field(type, "segmentLeaderEpochs").read(segment);
        reply.add(epochs.size());
        for (Map.Entry<?, ?> each : epochs.entrySet()) {
            reply.add(((Number) each.getKey()).longValue());
            reply.add(((Number) each.getValue()).longValue());
        }
        reply.add(content(segment, state.ordinal() == 1));
    }

    /** Returns a checksum of all files of a segment, or 0 without any. The files of a copied segment never change. */
    private long content(Object segment, boolean copied) throws Throwable {
        Object id = field(segment.getClass(), "remoteLogSegmentId").read(segment);
        Long known = copied ? contents.get(id) : null;
        if (known == null) {
            known = checksum(field(segment.getClass(), "startOffset").readLong(segment),
                field(id.getClass(), "id").read(id).toString());
            contents.put(id, known);
        }
        return known;
    }

    private long checksum(long start, String id) throws IOException {
        CRC32 sum = new CRC32();
        boolean found = false;
        for (File directory : files.listFiles())
            for (String suffix : SUFFIXES) {
                File file = new File(directory, String.format("%020d-%s%s", start, id, suffix));
                found |= file.exists();
                byte[] content = file.exists() ? Files.readAllBytes(file.toPath()) : new byte[0];
                sum.update(ByteBuffer.allocate(8).putLong(file.exists() ? content.length : -1).flip());
                sum.update(content);
            }
        return found ? sum.getValue() : 0;
    }

    /** Closes the manager without changing the log. */
    void stop() {
        if (remote == null)
            return;
        try {
            Members.call(Members.method(manager, "close", 0), remote);
        } catch (Throwable ignored) {
            // errors of an abandoned manager do not matter
        }
        remote = null;
    }

}
