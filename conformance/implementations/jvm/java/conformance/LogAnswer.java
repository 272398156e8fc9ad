package conformance;

/** FileRecords.TimestampAndOffset: fields in all releases so far, the epoch an Optional. */
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

    /** 0 timestamp, 1 offset, 2 leader epoch or -1. */
    long field(Object answer, int field) throws Throwable {
        if (field == 0)
            return timestamp.readLong(answer);
        if (field == 1)
            return offset.readLong(answer);
        Object epoch = Options.get(leaderEpoch.read(answer));
        return epoch == null ? -1 : ((Number) epoch).longValue();
    }
}
