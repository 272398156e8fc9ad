package conformance;

import java.io.File;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;

/** Executes operations on one index, one of them interrupted by the others. */
public final class Interruptions {
    private final Class<?> type;
    private final Method arm;
    private final Method points;
    private final Method where;
    private final Method waited;
    private final File file;
    private Object index;

    public Interruptions(ClassLoader loader, String directory, String... names) throws Throwable {
        type = Members.type(loader, names);
        Class<?> switches = Class.forName("conformance.Switch", true, loader);
        arm = switches.getMethod("arm", int.class, Runnable.class);
        points = switches.getMethod("points");
        where = switches.getMethod("where");
        waited = switches.getMethod("waited");
        file = new File(directory, "00000000000000000000.index");
    }

    /**
     * What comes of it: how many points there were, where the first operation was interrupted, the results of the first
     * and of the others, and the state at the end; null if the others would have had to wait.
     *
     * @param setup operations before: a name, then arguments, with blanks between them
     * @param first the interrupted operation
     * @param others the operations that run during the interruption
     * @param point where, or -1 for never: then the others do not run
     */
    public String[] run(String[] setup, String first, String[] others, int point) throws Throwable {
        open();
        try {
            for (String each : setup)
                perform(each);
            List<String> results = new ArrayList<>();
            Runnable meanwhile = () -> {
                for (String each : others)
                    results.add(perform(each));
            };
            arm.invoke(null, point, meanwhile);
            String own = perform(first);
            if ((Boolean) waited.invoke(null))
                return null;
            int count = (Integer) points.invoke(null);
            String at = (String) where.invoke(null);
            arm.invoke(null, -1, null);
            return new String[] {Integer.toString(count), at, own, String.join(", ", results), state()};
        } catch (Error waits) {
            if (isWait(waits))
                return null;
            throw waits;
        } finally {
            arm.invoke(null, -1, null);
            close();
        }
    }

    private void open() throws Throwable {
        Files.deleteIfExists(file.toPath());
        index = type.getSimpleName().equals("Racy")
            ? Members.create(Members.constructor(type, 0))
            : Members.create(Members.constructor(type, 4), file, 0L, 240, true);
    }

    private void close() {
        try {
            Members.call(Members.method(type, "closeHandler", 0), index);
        } catch (Throwable ignored) {
            // a counter has none
        }
    }

    private String perform(String operation) {
        String[] words = operation.split(" ");
        try {
            Method method = Members.method(type, words[0], words.length - 1);
            Object[] arguments = new Object[words.length - 1];
            for (int i = 0; i < arguments.length; i++)
                arguments[i] = argument(method.getParameterTypes()[i], words[i + 1]);
            Object result = Members.call(method, index, arguments);
            return String.valueOf(result).replaceFirst("^\\w+[(\\[](.*)[)\\]]$", "$1");
        } catch (Error waits) {
            if (isWait(waits))
                throw waits;
            return waits.getClass().getSimpleName();
        } catch (Throwable thrown) {
            return thrown.getClass().getSimpleName();
        }
    }

    private static boolean isWait(Error error) {
        return error.getClass().getSimpleName().equals("Waits");
    }

    private static Object argument(Class<?> type, String word) {
        if (type == long.class)
            return Long.parseLong(word);
        if (type == int.class)
            return Integer.parseInt(word);
        return Boolean.parseBoolean(word);
    }

    private String state() {
        StringBuilder text = new StringBuilder();
        for (String name : new String[] {"value", "entries", "lastOffset", "lastEntry", "maxEntries"})
            if (Members.methodOrNull(type, name, 0) != null)
                text.append(name).append('=').append(perform(name)).append(' ');
        return text.toString().trim();
    }
}
