package conformance;

import java.lang.reflect.Constructor;
import java.util.NoSuchElementException;

/** A class, or a member of one, that a build of Kafka does not have and an adapter needs. */
public final class Missing extends NoSuchElementException {
    /** Any number of parameters. */
    static final int ANY = -1;
    /** The value is read: from a method without parameters, or from a field. */
    static final int READ = -2;
    static final String CONSTRUCTOR = "<init>";

    private final String[] types;
    private final String member;
    private final int parameters;

    /** A class that has none of these names. */
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

    /** Whether the classes of another loader have it. */
    public boolean isIn(ClassLoader loader) {
        for (String name : types) {
            try {
                Class<?> type = Class.forName(name, false, loader);
                if (member == null || has(type))
                    return true;
            } catch (ReflectiveOperationException | LinkageError notThisOne) {
                // the next name is from another era
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
