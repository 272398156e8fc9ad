package conformance;

/** Reader of FileRecords.TimestampAndOffset. */
final class LogAnswer {
    private final Class<?> type;
    private final Members.Reader timestamp;
    private final Members.Reader offset;
    private final Members.Reader leaderEpoch;

    LogAnswer(Class<?> type) {
        this.type = type;
        timestamp = new Members.Reader(type, "timestamp");
        offset = new Members.Reader(type, "offset");
        leaderEpoch = new Members.Reader(type, "leaderEpoch");
    }

    boolean reads(Object answer) {
        return type.isInstance(answer);
    }

    /** Adds the timestamp, the offset, and the leader epoch or -1. */
    void add(Object answer, Reply reply) throws Throwable {
        reply.add(timestamp.readLong(answer));
        reply.add(offset.readLong(answer));
        Object epoch = Options.get(leaderEpoch.read(answer));
        reply.add(epoch == null ? -1 : ((Number) epoch).longValue());
    }
}
