package conformance;

import java.lang.reflect.Method;

/** kafka.log.TimeIndex (up to 3.4), org.apache.kafka.storage.internals.log.TimeIndex (from 3.5), and the class of a fork. */
final class TimeIndexAdapter extends MappedIndexAdapter {
    private final Method maybeAppend;
    private final Method lastEntry;
    private final Members.Reader timestamp;
    private final Members.Reader offset;

    TimeIndexAdapter(ClassLoader loader) throws Throwable {
        super(Members.type(loader,
            "org.apache.kafka.storage.internals.log.TimeIndex", "kafka.log.TimeIndex",
            "org.apache.fluss.server.log.TimeIndex"));
        Class<?> result = Members.type(loader,
            "org.apache.kafka.storage.internals.log.TimestampOffset", "kafka.log.TimestampOffset",
            "org.apache.fluss.server.log.TimestampOffset");
        maybeAppend = Members.method(type, "maybeAppend", 3);
        lastEntry = Members.method(type, "lastEntry", 0);
        timestamp = new Members.Reader(result, "timestamp");
        offset = new Members.Reader(result, "offset");
    }

    @Override
    void addEntry(Object entry, Reply reply) throws Throwable {
        reply.add(timestamp.readLong(entry));
        reply.add(offset.readLong(entry));
    }

    @Override
    void append(long a, long b, boolean flag) throws Throwable {
        Members.call(maybeAppend, index, a, b, flag);
    }

    @Override
    void performOwn(String operation, long[] arguments, Reply reply) throws Throwable {
        switch (operation) {
            case "maybe_append" -> append(arguments[0], arguments[1], arguments[2] != 0);
            case "bulk_maybe_append" -> appendMany(arguments);
            default -> super.performOwn(operation, arguments, reply);
        }
    }

    @Override
    long[] last() throws Throwable {
        Object last = Members.call(lastEntry, index);
        return new long[] {timestamp.readLong(last), offset.readLong(last)};
    }
}
