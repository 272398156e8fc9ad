package conformance;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;

/**
 * kafka.log.OffsetIndex (up to 3.4), org.apache.kafka.storage.internals.log.OffsetIndex (from 3.5), and the class of a fork.
 */
final class OffsetIndexAdapter extends MappedIndexAdapter {
    private final Method append;
    private final Method lastOffset;
    private final Method fetchUpperBoundOffset;
    private final Constructor<?> newPosition;
    private final Members.Reader offset;
    private final Members.Reader position;

    OffsetIndexAdapter(ClassLoader loader) throws Throwable {
        super(Members.type(loader,
            "org.apache.kafka.storage.internals.log.OffsetIndex", "kafka.log.OffsetIndex",
            "org.apache.fluss.server.log.OffsetIndex"));
        Class<?> result = Members.type(loader,
            "org.apache.kafka.storage.internals.log.OffsetPosition", "kafka.log.OffsetPosition",
            "org.apache.fluss.server.log.OffsetPosition");
        append = Members.method(type, "append", 2);
        lastOffset = Members.method(type, "lastOffset", 0);
        fetchUpperBoundOffset = Members.method(type, "fetchUpperBoundOffset", 2);
        newPosition = Members.constructor(result, 2);
        offset = new Members.Reader(result, "offset");
        position = new Members.Reader(result, "position");
    }

    @Override
    void addEntry(Object entry, Reply reply) throws Throwable {
        reply.add(offset.readLong(entry));
        reply.add(position.readLong(entry));
    }

    @Override
    void append(long a, long b, boolean flag) throws Throwable {
        Members.call(append, index, a, (int) b);
    }

    @Override
    long[] last() throws Throwable {
        return new long[] {(Long) Members.call(lastOffset, index)};
    }

    @Override
    void performOwn(String operation, long[] arguments, Reply reply) throws Throwable {
        switch (operation) {
            case "append" -> append(arguments[0], arguments[1], false);
            case "bulk_append" -> appendMany(arguments);
            case "fetch_upper_bound" -> {
                Object from = Members.create(newPosition, arguments[0], (int) arguments[1]);
                Object found = Options.get(Members.call(fetchUpperBoundOffset, index, from, (int) arguments[2]));
                if (found != null)
                    addEntry(found, reply);
            }
            default -> super.performOwn(operation, arguments, reply);
        }
    }
}
