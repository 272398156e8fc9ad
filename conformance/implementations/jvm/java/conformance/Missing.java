package conformance;

import java.lang.reflect.Constructor;
import java.util.NoSuchElementException;

/** Exception for a class, method or field that an adapter needs and a build of Kafka does not have. */
public final class Missing extends NoSuchElementException {
    /** Number of parameters if any number is accepted. */
    static final int ANY = -1;
    /** Number of parameters if a field is accepted, too. */
    static final int READ = -2;
    static final String CONSTRUCTOR = "<init>";

    private final String[] types;
    private final String member;
    private final int parameters;

    /** No class has one of these names. */
    Missing(String... types) {
        super("there is no class " + types[0]);
        this.types = types;
        member = null;
        parameters = ANY;
    }

    Missing(Class<?> type, String member, int parameters) {
        super("the class " + type.getName() + " has no " + described(member, parameters));
        this.types = new String[] {type.getName(), "kafka.log." + type.getSimpleName()};
        this.member = member;
        this.parameters = parameters;
    }

    private static String described(String member, int parameters) {
        if (parameters == READ)
            return "field or accessor " + member;
        String what = member.equals(CONSTRUCTOR) ? "constructor" : "method " + member;
        return parameters == ANY ? what : what + " with " + parameters + " parameter" + (parameters == 1 ? "" : "s");
    }

    /** Returns true if the classes of another loader have it. */
    public boolean isIn(ClassLoader loader) {
        for (String name : types) {
            try {
                Class<?> type = Class.forName(name, false, loader);
                if (member == null || has(type))
                    return true;
            } catch (ReflectiveOperationException | LinkageError notThisOne) {
                // try the name in other releases
            }
        }
        return false;
    }

    private boolean has(Class<?> type) {
        if (member.equals(CONSTRUCTOR)) {
            for (Constructor<?> constructor : type.getDeclaredConstructors())
                if (constructor.getParameterCount() == parameters)
                    return true;
            return false;
        }
        if (parameters == READ)
            return Members.methodOrNull(type, member, 0) != null || Members.fieldOrNull(type, member) != null;
        return parameters == ANY ? Members.longestOrNull(type, member) != null
            : Members.methodOrNull(type, member, parameters) != null;
    }
}
