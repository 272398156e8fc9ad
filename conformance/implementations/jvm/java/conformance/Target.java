package conformance;

import java.io.File;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.Deque;

/** Object that two threads share: an index, a segment or a cache of one release, driven by operations as text. */
abstract class Target {
    /** Creates the target in an empty directory. */
    abstract void open(File directory) throws Throwable;

    /** Executes an operation: a name, then arguments. */
    abstract Object execute(String[] words) throws Throwable;

    /** The operations whose results are the state. */
    abstract String[] probes();

    /** Releases all files and mappings. */
    abstract void close() throws Throwable;

    /** Calls a method by its name, with the arguments after it. */
    static Object call(Class<?> type, Object target, String[] words) throws Throwable {
        Method method = Members.method(type, words[0], words.length - 1);
        Object[] arguments = new Object[words.length - 1];
        for (int i = 0; i < arguments.length; i++)
            arguments[i] = argument(method.getParameterTypes()[i], words[i + 1]);
        return Members.call(method, target, arguments);
    }

    private static Object argument(Class<?> type, String word) {
        if (type == long.class)
            return Long.parseLong(word);
        if (type == int.class)
            return Integer.parseInt(word);
        return Boolean.parseBoolean(word);
    }

    static void empty(File directory) {
        Deque<File> left = new ArrayDeque<>();
        left.add(directory);
        while (!left.isEmpty()) {
            File[] files = left.poll().listFiles();
            if (files != null)
                for (File file : files)
                    if (file.isDirectory())
                        left.add(file);
                    else
                        file.delete();
        }
    }
}
