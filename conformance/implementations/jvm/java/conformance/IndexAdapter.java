package conformance;

import java.io.File;
import java.lang.reflect.Method;

/** What the three kinds of index have in common: opening, the operations without arguments, renaming. */
abstract class IndexAdapter {
    // The order of conformance/implementations/jvm/index.py.
    static final int CRASH = 0;
    static final int TRUNCATE_TO = 1;
    static final int RESET = 2;
    static final int FLUSH = 3;
    static final int SANITY_CHECK = 4;
    static final int CLOSE = 5;
    static final int DELETE = 6;
    static final int LOOKUP = 7;
    static final int ENTRY = 8;
    static final int TRUNCATE = 9;
    static final int RESIZE = 10;
    static final int TRIM = 11;
    static final int APPEND = 12;
    static final int BULK_APPEND = 13;
    static final int FETCH_UPPER_BOUND = 14;
    static final int COLLECT_ABORTED = 15;
    static final int ALL_ABORTED = 16;

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

    /** The operations of one kind of index alone. */
    abstract void performOwn(int operation, long a, long b, long c, long d, long e, Reply reply) throws Throwable;

    final void perform(int operation, long a, long b, long c, long d, long e, Reply reply) throws Throwable {
        switch (operation) {
            case TRUNCATE_TO -> Members.call(truncateTo, index, a);
            case RESET -> Members.call(reset, index);
            case FLUSH -> Members.call(flush, index);
            case SANITY_CHECK -> Members.call(sanityCheck, index);
            case CLOSE -> Members.call(close, index);
            case DELETE -> reply.add((Boolean) Members.call(deleteIfExists, index) ? 1 : 0);
            default -> performOwn(operation, a, b, c, d, e, reply);
        }
    }

    final void rename(File file) throws Throwable {
        Members.call(renameTo, index, file);
    }

    /** Unmaps or closes without changing the file, and forgets the index. */
    void abandon() {
        if (index == null)
            return;
        try {
            // 4.4 has no closeHandler any more; its close() is what closeHandler() was.
            Method handler = Members.methodOrNull(type, "closeHandler", 0);
            Members.call(handler != null ? handler : close, index);
        } catch (Throwable ignored) {
            // what is abandoned has nothing to say
        }
        index = null;
    }
}
