package conformance;

import java.io.Closeable;
import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Optional;

/** Adapter of kafka.log.LogSegment (up to 3.6) or o.a.k.storage.internals.log.LogSegment, by reflection. */
final class SegmentAdapter {
    final SegmentParts parts;
    private final Class<?> type;
    private final SegmentState state;
    private final AbortedTransactions transactions = new AbortedTransactions();
    private final Method append;
    private final Method recover;
    private final Method read;
    private final Method translateOffset;
    private final Method findOffsetByTimestamp;
    private final Method shouldRoll;
    private final Field rollJitterMs;
    private LogAnswer answer;
    private Members.Reader[] position;
    private Members.Reader[] fetched;
    private Members.Reader messageOffset;
    private Members.Reader relativePosition;
    private Object segment;
    private File directory;

    SegmentAdapter(ClassLoader loader, LogEnvironment environment) throws Throwable {
        parts = new SegmentParts(loader, environment);
        type = parts.type;
        state = new SegmentState(type);
        Method perCall = Members.methodOrNull(type, "append", 4);
        append = perCall != null ? perCall : Members.method(type, "append", 2);
        recover = Members.method(type, "recover", 2);
        read = Members.method(type, "read", 4);
        translateOffset = Members.method(type, "translateOffset", 2);
        Method bounded = Members.methodOrNull(type, "findOffsetByTimestamp", 3);
        findOffsetByTimestamp = bounded != null ? bounded : Members.method(type, "findOffsetByTimestamp", 2);
        shouldRoll = Members.method(type, "shouldRoll", 1);
        rollJitterMs = Members.field(type, "rollJitterMs");
    }

    boolean isOpen() {
        return segment != null;
    }

    void open(File directory, long baseOffset, int indexInterval, int indexSize, long jitterMs, boolean exists,
              int initFileSize, boolean preallocate, String suffix) throws Throwable {
        this.directory = directory;
        segment = parts.open(directory, baseOffset, indexInterval, indexSize, exists, initFileSize, preallocate, suffix);
        rollJitterMs.setLong(segment, jitterMs);  // otherwise Kafka draws a random number
    }

    void append(byte[] records, long largestOffset, long largestTimestamp, long shallowOffset) throws Throwable {
        if (append.getParameterCount() == 2)
            Members.call(append, segment, largestOffset, parts.records(records));
        else
            Members.call(append, segment, largestOffset, largestTimestamp, shallowOffset, parts.records(records));
    }

    long appendFromFile(File file, int start) throws Throwable {
        Object records = parts.fileRecords(file);
        try {
            return ((Number) call("appendFromFile", records, start)).longValue();
        } finally {
            ((Closeable) Members.call(Members.method(records.getClass(), "channel", 0), records)).close();
        }
    }

    private Object call(String name, Object... arguments) throws Throwable {
        return Members.call(Members.method(type, name, arguments.length), segment, arguments);
    }

    void execute(String operation, long a, long b, long c, long d, Reply reply) throws Throwable {
        switch (operation) {
            case "become_inactive" -> call("onBecomeInactiveSegment");
            case "close_segment" -> call("close");
            case "close_handlers" ->
                call(Members.methodOrNull(type, "closeHandlers", 0) != null ? "closeHandlers" : "closeQuietly");
            case "recover_segment" -> reply.add(((Number) Members.call(recover, segment,
                parts.producerState(directory), parts.noEpochCache())).longValue());
            case "truncate_segment" -> reply.add(((Number) call("truncateTo", a)).longValue());
            case "translate_offset" -> translate(a, (int) b, reply);
            case "read_segment" -> read(a, (int) b, c, d != 0, reply);
            case "read_next_offset" -> reply.add((Long) call("readNextOffset"));
            case "find_offset" -> find(a, b, (int) c, reply);
            case "largest_timestamp" -> {
                logFile().setLastModified(a);
                reply.add((Long) call("largestTimestamp"));
            }
            case "has_overflow" -> reply.add((Boolean) call("hasOverflow") ? 1 : 0);
            case "flush_segment" -> call("flush");
            case "delete_segment" -> call("deleteIfExists");
            case "check_segment" -> call("sanityCheck", a != 0);
            case "resize_indexes" -> call("resizeIndexes", (int) a);
            case "collect_from_segment" -> transactions.addResult(call("collectAbortedTxns", a, b), reply);
            case "upper_bound_in_segment" -> {
                Object found = Options.get(call("fetchUpperBoundOffset", parts.offsetPosition(a, (int) b), (int) c));
                if (found != null)
                    reply.add(((Number) found).longValue());
            }
            case "first_batch_timestamp" -> reply.add((Long) call("getFirstBatchTimestamp"));
            default -> throw new UnsupportedOperationException("operation " + operation);
        }
    }

    private File logFile() throws Throwable {
        Object log = Members.call(Members.method(type, "log", 0), segment);
        return (File) Members.call(Members.method(log.getClass(), "file", 0), log);
    }

    boolean shouldRoll(long maxMs, int maxBytes, long timestamp, long offset, int size, long now) throws Throwable {
        Object params = parts.rollParams(maxMs, maxBytes, timestamp, offset, size, now);
        return (Boolean) Members.call(shouldRoll, segment, params);
    }

    void updateTxnIndex(long producerId, long first, long last, boolean aborted, long stable) throws Throwable {
        call("updateTxnIndex", parts.completedTxn(producerId, first, last, aborted), stable);
    }

    void rename(String oldSuffix, String newSuffix) throws Throwable {
        call("changeFileSuffixes", oldSuffix, newSuffix);
    }

    /** Sets another parent directory of the files. */
    void updateDirectory(File elsewhere) throws Throwable {
        call(Members.methodOrNull(type, "updateParentDir", 1) != null ? "updateParentDir" : "updateDir", elsewhere);
    }

    private void translate(long offset, int start, Reply reply) throws Throwable {
        Object found = Members.call(translateOffset, segment, offset, start);
        if (found == null)
            return;
        if (position == null)
            position = Members.readers(found.getClass(), "offset", "position", "size");
        for (Members.Reader reader : position)
            reply.add(reader.readLong(found));
    }

    private void read(long start, int maxSize, long maxPosition, boolean minOne, Reply reply) throws Throwable {
        Object limit = read.getParameterTypes()[2] == Optional.class ? Optional.of(maxPosition) : (Object) maxPosition;
        Object data = Members.call(read, segment, start, maxSize, limit, minOne);
        if (data == null)
            return;
        if (fetched == null)
            fetched = Members.readers(data.getClass(), "fetchOffsetMetadata", "records", "firstEntryIncomplete");
        Object metadata = fetched[0].read(data);
        if (messageOffset == null) {
            messageOffset = new Members.Reader(metadata.getClass(), "messageOffset");
            relativePosition = new Members.Reader(metadata.getClass(), "relativePositionInSegment");
        }
        Object records = fetched[1].read(data);
        reply.add(messageOffset.readLong(metadata));
        reply.add(relativePosition.readLong(metadata));
        reply.add(((Number) Members.call(Members.method(records.getClass(), "sizeInBytes", 0), records)).longValue());
        reply.add((Boolean) fetched[2].read(data) ? 1 : 0);
    }

    private void find(long timestamp, long start, int maxRecordBodySize, Reply reply) throws Throwable {
        Object result = findOffsetByTimestamp.getParameterCount() == 2
            ? Members.call(findOffsetByTimestamp, segment, timestamp, start)
            : Members.call(findOffsetByTimestamp, segment, timestamp, start, maxRecordBodySize);
        Object found = Options.get(result);
        if (found == null)
            return;
        if (answer == null)
            answer = new LogAnswer(found.getClass());
        answer.add(found, reply);
    }

    void state(Reply reply) throws Throwable {
        state.read(segment, reply);
    }

    /** Releases all files as a killed process does: nothing is opened, and nothing is written. */
    void abandon() {
        if (segment == null)
            return;
        try {
            state.closeFiles(segment);
        } catch (Throwable ignored) {
            // errors of an abandoned segment do not matter
        }
        segment = null;
    }
}
