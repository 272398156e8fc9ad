package conformance;

/** Reader of kafka.log.LogAppendInfo or o.a.k.storage.internals.log.LogAppendInfo, the result of an append. */
final class AppendResults {
    private static final String[] NAMES =
        {"lastOffset", "lastLeaderEpoch", "maxTimestamp", "logAppendTime", "logStartOffset", "validBytes"};

    private final Members.Reader firstOffset;
    private final Members.Reader[] readers = new Members.Reader[NAMES.length];

    AppendResults(ClassLoader loader) {
        Class<?> type = Members.type(loader, "org.apache.kafka.storage.internals.log.LogAppendInfo", "kafka.log.LogAppendInfo");
        firstOffset = new Members.Reader(type, "firstOffset");
        for (int i = 0; i < NAMES.length; i++)
            if (!NAMES[i].equals("lastLeaderEpoch") || Members.methodOrNull(type, NAMES[i], 0) != null)  // since 2.8
                readers[i] = new Members.Reader(type, NAMES[i]);
    }

    /** Adds the fields of a result; -1 for an empty one, and for one that the release does not have. */
    void add(Object result, Reply reply) throws Throwable {
        reply.add(offset(firstOffset.read(result)));
        for (Members.Reader reader : readers)
            reply.add(reader == null ? -1 : number(reader.read(result)));
    }

    /** Returns a first offset: a number, or perhaps one, or perhaps an offset with its position (2.8 to 3.6). */
    private static long offset(Object value) throws Throwable {
        Object found = value instanceof Number ? value : Options.get(value);
        if (found == null || found instanceof Number)
            return number(found);
        return new Members.Reader(found.getClass(), "messageOffset").readLong(found);
    }

    private static long number(Object value) throws Throwable {
        Object found = value == null || value instanceof Number ? value : Options.get(value);
        return found == null ? -1 : ((Number) found).longValue();
    }
}
