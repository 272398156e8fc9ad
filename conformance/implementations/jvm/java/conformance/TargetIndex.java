package conformance;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;

/** Offset or time index, alone or in a LazyIndex. */
final class TargetIndex extends Target {
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";
    private static final String FILE = "00000000000000000000.index";
    private static final int MAX_INDEX_SIZE = 240;

    private final Class<?> type;
    private final Class<?> lazyType;
    private final String kind;
    private File directory;
    private File file;
    private Object index;

    /** kind: Offset or Time; lazy: whether the index is loaded at its first use. */
    TargetIndex(ClassLoader loader, String kind, boolean lazy) {
        this.kind = kind;
        type = Members.type(loader, STORAGE + kind + "Index", "kafka.log." + kind + "Index");
        lazyType = lazy ? Members.type(loader, STORAGE + "LazyIndex", "kafka.log.LazyIndex") : null;
    }

    @Override
    void open(File directory) throws Throwable {
        this.directory = directory;
        file = new File(directory, FILE);
        empty(directory);
        load();
    }

    private void load() throws Throwable {
        if (lazyType == null) {
            Constructor<?> constructor = Members.constructor(type, 4);
            index = Members.create(constructor, file, 0L, MAX_INDEX_SIZE, true);
            return;
        }
        Method short3 = Members.methodOrNull(lazyType, "for" + kind, 3);
        index = short3 != null
            ? Members.call(short3, null, file, 0L, MAX_INDEX_SIZE)
            : Members.call(Members.method(lazyType, "for" + kind, 4), null, file, 0L, MAX_INDEX_SIZE, true);
    }

    @Override
    Object execute(String[] words) throws Throwable {
        switch (words[0]) {
            case "reopen" -> {
                Members.call(Members.method(index.getClass(), "close", 0), index);
                load();
                return null;
            }
            case "renameTo" -> {
                return Members.call(Members.method(index.getClass(), "renameTo", 1), index, new File(directory, words[1]));
            }
            case "file" -> {
                return ((File) Members.call(Members.method(index.getClass(), "file", 0), index)).getName();
            }
            default -> {
                if (lazyType != null && Members.methodOrNull(lazyType, words[0], words.length - 1) == null)
                    return call(type, Members.call(Members.method(lazyType, "get", 0), index), words);
                return call(index.getClass(), index, words);
            }
        }
    }

    @Override
    String[] probes() {
        String last = kind.equals("Offset") ? "lastOffset" : "lastEntry";
        return lazyType == null
            ? new String[] {"entries", last, "maxEntries"}
            : new String[] {"file", "entries", last, "maxEntries"};
    }

    @Override
    void close() throws Throwable {
        Method handler = Members.methodOrNull(index.getClass(), "closeHandler", 0);
        Members.call(handler != null ? handler : Members.method(index.getClass(), "close", 0), index);
    }
}
