package conformance;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * Arguments of a log's factory method: kafka.log.Log.apply (2.4 - 3.0), kafka.log.UnifiedLog.apply (3.1 - 4.0) and
 * o.a.k.storage.internals.log.UnifiedLog.create (4.1 and later). It has between 10 and 16 parameters, and each argument is
 * chosen by the type of its parameter. Two facts are assumed: the log start offset precedes the recovery point, and the
 * first boolean states whether the last shutdown was clean.
 */
final class LogParts {
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static final String MARKER = ".kafka_cleanshutdown";
    private static final int MOST_CONFIGS = 64;

    final Class<?> type;
    private final ClassLoader loader;
    private final LogEnvironment environment;
    private final Method create;
    private final Class<?> configType;
    private final Map<Map<String, String>, Object> configs = new HashMap<>();
    private Object topicStats;
    /** True if the broker has remote storage. */
    boolean tiered;

    LogParts(ClassLoader loader, LogEnvironment environment) throws Throwable {
        this.loader = loader;
        this.environment = environment;
        Class<?> log = null;
        Method factory = null;
        for (String name : new String[] {"kafka.log.Log", "kafka.log.UnifiedLog", STORAGE + "UnifiedLog"}) {
            try {
                log = Members.type(loader, name);
                factory = factory(log);
            } catch (Missing notThisOne) {
                // try the next name; in 4.0 another class than the log has the last name
            }
            if (factory != null)
                break;
        }
        if (factory == null)
            throw new Missing(STORAGE + "UnifiedLog", "kafka.log.UnifiedLog");
        type = log;
        create = factory;
        configType = Members.type(loader, STORAGE + "LogConfig", "kafka.log.LogConfig");
    }

    ClassLoader loader() {
        return loader;
    }

    /** Returns the static factory method of a log with the most parameters. */
    private static Method factory(Class<?> log) {
        Method found = null;
        for (Method method : log.getDeclaredMethods())
            if (Modifier.isStatic(method.getModifiers()) && method.getReturnType() == log
                && (method.getName().equals("apply") || method.getName().equals("create"))
                && (found == null || method.getParameterCount() > found.getParameterCount()))
                found = method;
        return found;
    }

    /** Returns true if a parameter, not a file, states that the last shutdown was clean (2.8 and later). */
    private boolean hasCleanParameter() {
        for (Class<?> parameter : create.getParameterTypes())
            if (parameter == boolean.class)
                return true;
        return false;
    }

    Object open(File directory, Object config, long start, long recoveryPoint, boolean clean, int expirationMs,
                boolean verifies) throws Throwable {
        File marker = new File(directory.getParentFile(), MARKER);
        if (!hasCleanParameter() && clean)
            marker.createNewFile();
        try {
            Class<?>[] parameters = create.getParameterTypes();
            Object[] arguments = new Object[parameters.length];
            int longs = 0;
            int booleans = 0;
            for (int i = 0; i < parameters.length; i++) {
                Class<?> parameter = parameters[i];
                if (parameter == File.class)
                    arguments[i] = directory;
                else if (parameter == long.class)
                    arguments[i] = longs++ == 0 ? start : recoveryPoint;
                else if (parameter == int.class)
                    arguments[i] = expirationMs;  // the other numbers are delays, which never end in a test
                else if (parameter == boolean.class)
                    arguments[i] = booleans++ == 0 ? clean : !isRemote(parameters, i) || tiered;
                else if (parameter == configType)
                    arguments[i] = config;
                else
                    arguments[i] = argument(parameter, expirationMs, verifies);
            }
            return Members.call(create, null, arguments);
        } finally {
            marker.delete();
        }
    }

    /** Returns true if a boolean states that the broker has remote storage, and not that the log keeps its topic id. */
    private static boolean isRemote(Class<?>[] parameters, int place) {
        return parameters[place - 1] == ConcurrentMap.class;
    }

    /** Returns the argument for a parameter, chosen by its type. */
    private Object argument(Class<?> parameter, int expirationMs, boolean verifies) throws Throwable {
        switch (parameter.getSimpleName()) {
            case "Time": return environment.clock(parameter);
            case "Scheduler": return environment.scheduler(parameter);
            case "LogOffsetsListener": return environment.listener(parameter);
            case "Option": return none();
            case "Optional": return Optional.empty();
            case "ConcurrentMap": return new ConcurrentHashMap<>();
            case "BrokerTopicStats": return topicStats(parameter);
            case "LogDirFailureChannel": return Members.create(Members.constructor(parameter, 1), 1);
            case "ProducerStateManagerConfig": return producerConfig(parameter, expirationMs, verifies);
            default: throw new ClassNotFoundException("the factory of the log has a parameter of the unknown type " + parameter.getName());
        }
    }

    Object none() throws Throwable {
        return module("scala.None$");
    }

    /** Returns the instance of a Scala object. */
    Object module(String name) throws Throwable {
        return Class.forName(name, true, loader).getField("MODULE$").get(null);
    }

    /** Returns the BrokerTopicStats that all logs share, as in a broker: an instance has timers that never end. */
    Object topicStats(Class<?> type) throws Throwable {
        if (topicStats == null)
            topicStats = newTopicStats(type);
        return topicStats;
    }

    private Object newTopicStats(Class<?> type) throws Throwable {
        Constructor<?> constructor = type.getDeclaredConstructors()[0];
        for (Constructor<?> other : type.getDeclaredConstructors())
            if (other.getParameterCount() < constructor.getParameterCount() != tiered)
                constructor = other;
        if (constructor.getParameterCount() == 0)
            return Members.create(constructor);
        if (constructor.getParameterTypes()[0] == boolean.class)
            return Members.create(constructor, tiered);
        Map<String, String> enabled = new HashMap<>(Map.of("remote.log.storage.system.enable", "true"));
        return Members.create(constructor, tiered ? Optional.of(brokerConfig(enabled)) : Optional.empty());
    }

    /** Returns the configuration of a broker, which statistics and RemoteLogManager take up to 3.8. */
    Object brokerConfig(Map<String, String> properties) throws Throwable {
        properties.put("zookeeper.connect", "localhost:1");
        properties.put("group.consumer.assignors", "");  // its default is a class of a broker's jar
        return Members.create(Members.constructor(Members.type(loader, "kafka.server.KafkaConfig"), 1), properties);
    }

    private static Object producerConfig(Class<?> type, int expirationMs, boolean verifies) throws Throwable {
        Constructor<?> constructor = type.getDeclaredConstructors()[0];
        return constructor.getParameterCount() == 1
            ? Members.create(constructor, expirationMs)
            : Members.create(constructor, expirationMs, verifies);
    }

    /** Returns a topic's configuration, cached because parsing it takes longer than opening a log. */
    Object config(Map<String, String> settings, int segmentBytes) throws Throwable {
        Map<String, String> properties = new HashMap<>(settings);
        properties.put("segment.bytes", Integer.toString(segmentBytes));
        Object known = configs.get(properties);
        if (known != null)
            return known;
        if (configs.size() >= MOST_CONFIGS)
            configs.clear();
        Object made = newConfig(settings, segmentBytes);
        configs.put(properties, made);
        return made;
    }

    /**
     * Returns a configuration whose segment size is set by reflection, because from 4.0 the validator rejects segments
     * under a megabyte.
     */
    private Object newConfig(Map<String, String> settings, int segmentBytes) throws Throwable {
        Map<String, String> properties = new HashMap<>(settings);
        Object config;
        try {
            properties.put("segment.bytes", Integer.toString(segmentBytes));
            config = newConfig(properties);
        } catch (Exception tooSmall) {
            properties.remove("segment.bytes");
            config = newConfig(properties);
        }
        Field field = Members.field(configType, "segmentSize");
        if (field.getType() == int.class)
            field.setInt(config, segmentBytes);
        else
            field.set(config, segmentBytes);
        return config;
    }

    /** Returns the release's default of max.message.bytes, also the default of a broker's message.max.bytes. */
    int defaultMessageBytes() throws Throwable {
        return (Integer) Members.call(Members.method(configType, "maxMessageSize", 0), newConfig(Map.of()));
    }

    private Object newConfig(Map<String, String> properties) throws Throwable {
        for (Constructor<?> constructor : configType.getDeclaredConstructors())
            if (constructor.getParameterCount() == 1 && constructor.getParameterTypes()[0] == Map.class)
                return Members.create(constructor, properties);
        Object module = module(configType.getName() + "$");
        Object noOverrides = Members.call(Members.method(module.getClass(), "apply$default$2", 0), module);
        return Members.create(Members.constructor(configType, 2), properties, noOverrides);
    }
}
