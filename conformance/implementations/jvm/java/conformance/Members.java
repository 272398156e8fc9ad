package conformance;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Lookup of classes, methods and fields by name. Between 2.4 and 4.4 Kafka's classes moved from Scala to Java, fields
 * became record components, and methods were added, removed or made private.
 */
final class Members {
    private Members() {}

    /** Returns the first class of these names that the loader finds. */
    static Class<?> type(ClassLoader loader, String... names) {
        for (String name : names) {
            try {
                return Class.forName(name, true, loader);
            } catch (ClassNotFoundException notThisOne) {
                // try the name in other releases
            }
        }
        throw new Missing(names);
    }

    private record Key(Class<?> type, String name, int parameters) {}

    // Cached, because Class.getMethods copies all members, which is too slow for every Option and every list.
    private static final Map<Key, Optional<Method>> FOUND = new ConcurrentHashMap<>();
    private static final Map<Key, Optional<Field>> FIELDS = new ConcurrentHashMap<>();
    private static final Map<Key, Constructor<?>> CONSTRUCTORS = new ConcurrentHashMap<>();

    /** Returns the method of that name and number of parameters, inherited or private too; or null. */
    static Method methodOrNull(Class<?> type, String name, int parameters) {
        return FOUND.computeIfAbsent(new Key(type, name, parameters), Members::find).orElse(null);
    }

    private static Optional<Method> find(Key key) {
        Class<?> type = key.type();
        String name = key.name();
        int parameters = key.parameters();
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            for (Method method : at.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == parameters && !method.isBridge()) {
                    method.setAccessible(true);
                    return Optional.of(method);
                }
            }
        }
        return Optional.empty();
    }

    static Method method(Class<?> type, String name, int parameters) {
        Method found = methodOrNull(type, name, parameters);
        if (found == null)
            throw new Missing(type, name, parameters);
        return found;
    }

    /** Returns the method of that name with the most parameters; or null. */
    static Method longestOrNull(Class<?> type, String name) {
        Method found = null;
        for (Method method : type.getDeclaredMethods())
            if (method.getName().equals(name) && !method.isBridge()
                && (found == null || method.getParameterCount() > found.getParameterCount()))
                found = method;
        if (found != null)
            found.setAccessible(true);
        return found;
    }

    /** Returns a field; throws Missing if it does not exist. */
    static Field field(Class<?> type, String name) {
        Field found = fieldOrNull(type, name);
        if (found == null)
            throw new Missing(type, name, Missing.READ);
        return found;
    }

    static Constructor<?> constructor(Class<?> type, int parameters) {
        return CONSTRUCTORS.computeIfAbsent(new Key(type, Missing.CONSTRUCTOR, parameters), Members::findConstructor);
    }

    private static Constructor<?> findConstructor(Key key) {
        for (Constructor<?> constructor : key.type().getDeclaredConstructors()) {
            if (constructor.getParameterCount() == key.parameters()) {
                constructor.setAccessible(true);
                return constructor;
            }
        }
        throw new Missing(key.type(), Missing.CONSTRUCTOR, key.parameters());
    }

    /** Returns a field by its name, or by the suffix that Scala's name mangling leaves; or null. */
    static Field fieldOrNull(Class<?> type, String name) {
        return FIELDS.computeIfAbsent(new Key(type, name, Missing.READ), Members::findField).orElse(null);
    }

    private static Optional<Field> findField(Key key) {
        for (Field field : key.type().getDeclaredFields()) {
            if (field.getName().equals(key.name()) || field.getName().endsWith("_" + key.name())) {
                field.setAccessible(true);
                return Optional.of(field);
            }
        }
        return Optional.empty();
    }

    /** Calls a method; throws the exception that the method throws. */
    static Object call(Method method, Object target, Object... arguments) throws Throwable {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    static Object create(Constructor<?> constructor, Object... arguments) throws Throwable {
        try {
            return constructor.newInstance(arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    /** Returns readers of several values. */
    static Reader[] readers(Class<?> type, String... names) {
        Reader[] found = new Reader[names.length];
        for (int i = 0; i < names.length; i++)
            found[i] = new Reader(type, names[i]);
        return found;
    }

    /** Reader of a value that is a method in one release and a field in another. */
    static final class Reader {
        private final Method method;
        private final Field field;

        Reader(Class<?> type, String name) {
            method = methodOrNull(type, name, 0);
            field = method == null ? fieldOrNull(type, name) : null;
            if (method == null && field == null)
                throw new Missing(type, name, Missing.READ);
        }

        Object read(Object target) throws Throwable {
            return method != null ? call(method, target) : field.get(target);
        }

        long readLong(Object target) throws Throwable {
            return ((Number) read(target)).longValue();
        }
    }
}
