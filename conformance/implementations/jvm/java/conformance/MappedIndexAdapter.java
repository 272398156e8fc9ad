package conformance;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;

/** Base class of the adapters of offset and time indexes, which map a file of fixed-size entries. */
abstract class MappedIndexAdapter extends IndexAdapter {
    private final Constructor<?> constructor;
    private final Method lookup;
    private final Method entry;
    private final Method truncate;
    private final Method resize;
    private final Method trimToValidSize;
    private final Method entries;
    private final Method maxEntries;
    private final Method isFull;
    private final Method length;

    MappedIndexAdapter(Class<?> type) {
        super(type);
        constructor = Members.constructor(type, 4);
        lookup = Members.method(type, "lookup", 1);
        entry = Members.method(type, "entry", 1);
        truncate = Members.method(type, "truncate", 0);
        resize = Members.method(type, "resize", 1);
        trimToValidSize = Members.method(type, "trimToValidSize", 0);
        entries = Members.method(type, "entries", 0);
        maxEntries = Members.method(type, "maxEntries", 0);
        isFull = Members.method(type, "isFull", 0);
        length = Members.method(type, "length", 0);
    }

    /** Writes the two numbers of an entry. */
    abstract void addEntry(Object entry, Reply reply) throws Throwable;

    abstract void append(long a, long b, boolean flag) throws Throwable;

    final void appendMany(long[] arguments) throws Throwable {
        for (long i = 0; i < arguments[4]; i++)
            append(arguments[0] + i * arguments[2], arguments[1] + i * arguments[3], false);
    }

    abstract long[] last() throws Throwable;

    @Override
    final void open(File file, long baseOffset, int maxIndexSize, boolean writable) throws Throwable {
        Mappings.more();
        index = Members.create(constructor, file, baseOffset, maxIndexSize, writable);
    }

    @Override
    void performOwn(String operation, long[] arguments, Reply reply) throws Throwable {
        switch (operation) {
            case "lookup" -> addEntry(Members.call(lookup, index, arguments[0]), reply);
            case "entry" -> addEntry(Members.call(entry, index, (int) arguments[0]), reply);
            case "truncate" -> Members.call(truncate, index);
            case "resize" -> {
                Mappings.more();
                reply.add((Boolean) Members.call(resize, index, (int) arguments[0]) ? 1 : 0);
            }
            case "trim" -> Members.call(trimToValidSize, index);
            default -> throw new UnsupportedOperationException("operation " + operation);
        }
    }

    @Override
    final void state(Reply reply) throws Throwable {
        reply.add((Integer) Members.call(entries, index));
        Options.add(Members.call(maxEntries, index), reply);
        Options.add((Boolean) Members.call(isFull, index) ? 1 : 0, reply);
        Options.add(Members.call(length, index), reply);
        long[] last = last();
        reply.add(last.length);
        for (long number : last)
            reply.add(number);
    }
}
