package conformance;

import java.io.File;
import java.lang.reflect.Method;

/** Base class of the adapters of all kinds of index: opening, operations without arguments, renaming. */
abstract class IndexAdapter {
    final Class<?> type;
    Object index;
    private final Method truncateTo;
    private final Method reset;
    private final Method flush;
    private final Method sanityCheck;
    private final Method close;
    private final Method deleteIfExists;
    private final Method renameTo;

    IndexAdapter(Class<?> type) {
        this.type = type;
        truncateTo = Members.method(type, "truncateTo", 1);
        reset = Members.method(type, "reset", 0);
        flush = Members.method(type, "flush", 0);
        sanityCheck = Members.method(type, "sanityCheck", 0);
        close = Members.method(type, "close", 0);
        deleteIfExists = Members.method(type, "deleteIfExists", 0);
        renameTo = Members.method(type, "renameTo", 1);
    }

    abstract void open(File file, long baseOffset, int maxIndexSize, boolean writable) throws Throwable;

    abstract void state(Reply reply) throws Throwable;

    /** Executes an operation that only this kind of index has. */
    abstract void performOwn(String operation, long[] arguments, Reply reply) throws Throwable;

    final void execute(String operation, long[] arguments, Reply reply) throws Throwable {
        switch (operation) {
            case "truncate_to" -> Members.call(truncateTo, index, arguments[0]);
            case "reset" -> Members.call(reset, index);
            case "flush" -> Members.call(flush, index);
            case "sanity_check" -> Members.call(sanityCheck, index);
            case "close" -> Members.call(close, index);
            case "delete" -> reply.add((Boolean) Members.call(deleteIfExists, index) ? 1 : 0);
            default -> performOwn(operation, arguments, reply);
        }
    }

    final void rename(File file) throws Throwable {
        Members.call(renameTo, index, file);
    }

    /** Unmaps or closes the index without changing its file. */
    void abandon() {
        if (index == null)
            return;
        try {
            // 4.4 has no closeHandler any more; its close() is what closeHandler() was.
            Method handler = Members.methodOrNull(type, "closeHandler", 0);
            Members.call(handler != null ? handler : close, index);
        } catch (Throwable ignored) {
            // errors of an abandoned index do not matter
        }
        index = null;
    }
}
