package conformance;

import java.io.File;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Optional;

/** Segment in which every batch gets an index entry. */
final class TargetSegment extends Target {
    private static final int INDEX_SIZE = 240;
    private static final long MUCH_LATER = 1_000_000_000_000L;

    private final LogEnvironment environment;
    private final SegmentParts parts;
    private final Class<?> type;
    private final SegmentState state;
    private final Method append;
    private final Method read;
    private final Map<String, byte[]> batches;
    private File directory;
    private Object segment;

    TargetSegment(ClassLoader loader, Map<String, byte[]> batches) throws Throwable {
        this.batches = batches;
        environment = new LogEnvironment(loader);
        parts = new SegmentParts(loader, environment);
        type = parts.type;
        state = new SegmentState(type);
        Method perCall = Members.methodOrNull(type, "append", 4);
        append = perCall != null ? perCall : Members.method(type, "append", 2);
        read = Members.method(type, "read", 4);
    }

    @Override
    void open(File directory) throws Throwable {
        this.directory = directory;
        empty(directory);
        load(false);
    }

    private void load(boolean exists) throws Throwable {
        segment = parts.open(directory, 0, 1, INDEX_SIZE, exists, 0, false, "");
    }

    @Override
    Object execute(String[] words) throws Throwable {
        switch (words[0]) {
            case "reopen" -> {
                Members.call(Members.method(type, "close", 0), segment);
                load(true);
                // as a broker does with the active segment; otherwise its indexes are full
                return Members.call(Members.method(type, "resizeIndexes", 1), segment, INDEX_SIZE);
            }
            case "append" -> {
                return append(words);
            }
            case "read" -> {
                return read(Long.parseLong(words[1]), Integer.parseInt(words[2]));
            }
            case "find" -> {
                return find(Long.parseLong(words[1]), Long.parseLong(words[2]));
            }
            case "largestTimestamp" -> {
                long found = (Long) Members.call(Members.method(type, "largestTimestamp", 0), segment);
                return found > MUCH_LATER ? "modified" : (Object) found;
            }
            case "collect" -> {
                Object found = call(type, segment, new String[] {"collectAbortedTxns", words[1], words[2]});
                StringBuilder all = new StringBuilder();
                for (Object txn : Options.list(new Members.Reader(found.getClass(), "abortedTransactions").read(found)))
                    all.append(new Members.Reader(txn.getClass(), "firstOffset").readLong(txn)).append(' ');
                return all + "complete " + new Members.Reader(found.getClass(), "isComplete").read(found);
            }
            case "abort" -> {
                long first = Long.parseLong(words[1]);
                Object txn = parts.completedTxn(7, first, Long.parseLong(words[2]), true);
                return Members.call(Members.method(type, "updateTxnIndex", 2), segment, txn, first);
            }
            case "rename" -> {
                return Members.call(Members.method(type, "changeFileSuffixes", 2), segment, "", words[1]);
            }
            case "offsets", "times" -> {
                Object index = Members.call(
                    Members.method(type, words[0].equals("offsets") ? "offsetIndex" : "timeIndex", 0), segment);
                return call(index.getClass(), index, new String[] {words[1]});
            }
            default -> {
                return call(type, segment, words);
            }
        }
    }

    /** words: append, offset, timestamp. */
    private Object append(String[] words) throws Throwable {
        Object records = parts.records(batches.get(words[1] + " " + words[2]).clone());
        long offset = Long.parseLong(words[1]);
        return append.getParameterCount() == 2
            ? Members.call(append, segment, offset, records)
            : Members.call(append, segment, offset, Long.parseLong(words[2]), offset, records);
    }

    /** Returns the position, the size, and the offsets of the batches that a fetch returns. */
    private Object read(long start, int maxSize) throws Throwable {
        long size = ((Number) Members.call(Members.method(type, "size", 0), segment)).longValue();
        Object limit = read.getParameterTypes()[2] == Optional.class ? Optional.of(size) : (Object) size;
        Object data = Members.call(read, segment, start, maxSize, limit, true);
        if (data == null)
            return "nothing";
        Object metadata = new Members.Reader(data.getClass(), "fetchOffsetMetadata").read(data);
        Object records = new Members.Reader(data.getClass(), "records").read(data);
        StringBuilder text = new StringBuilder();
        text.append("position ")
            .append(new Members.Reader(metadata.getClass(), "relativePositionInSegment").readLong(metadata));
        text.append(" offsets");
        Iterable<?> batches = (Iterable<?>) Members.call(Members.method(records.getClass(), "batches", 0), records);
        for (Object batch : batches)
            text.append(' ').append(new Members.Reader(batch.getClass(), "lastOffset").readLong(batch));
        return text.toString();
    }

    private Object find(long timestamp, long start) throws Throwable {
        Method bounded = Members.methodOrNull(type, "findOffsetByTimestamp", 3);
        Object found = Options.get(bounded != null
            ? Members.call(bounded, segment, timestamp, start, 1 << 20)
            : Members.call(Members.method(type, "findOffsetByTimestamp", 2), segment, timestamp, start));
        if (found == null)
            return "nothing";
        return new Members.Reader(found.getClass(), "timestamp").readLong(found) + " "
            + new Members.Reader(found.getClass(), "offset").readLong(found);
    }

    @Override
    String[] probes() {
        return new String[] {
            "size", "maxTimestampSoFar", "offsets entries", "offsets lastOffset", "times entries", "times lastEntry"};
    }

    @Override
    void close() throws Throwable {
        state.closeFiles(segment);
    }
}
