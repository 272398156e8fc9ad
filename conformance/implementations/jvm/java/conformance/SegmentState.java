package conformance;

import java.io.Closeable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;

/**
 * State of a segment, read from its fields, because its methods would open indexes and create files. The numbers have the
 * order of SegmentState in conformance/operations/segment.py.
 */
final class SegmentState {
    private final boolean scala;
    private final Field log;
    private final Field bytesSince;
    private final Field created;
    private final Field rolling;
    private final Field largest;
    private final Field largestTimestamp;
    private final Field largestOffset;
    private final Field offsetIndex;
    private final Field timeIndex;
    private final Field txnIndex;
    private Members.Reader size;
    private Members.Reader pairTimestamp;
    private Members.Reader pairOffset;
    private Object unknown;
    private Field wrapper;
    private Mapped offsets;
    private Mapped times;
    private Field txnLast;

    SegmentState(Class<?> type) {
        scala = type.getName().startsWith("kafka.");
        log = Members.field(type, "log");
        bytesSince = Members.field(type, "bytesSinceLastIndexEntry");
        created = Members.field(type, "created");
        rolling = Members.field(type, "rollingBasedTimestamp");
        largest = Members.fieldOrNull(type, "maxTimestampAndOffsetSoFar");
        largestTimestamp = largest == null ? Members.field(type, "maxTimestampSoFar") : null;
        largestOffset = largest == null ? Members.field(type, "offsetOfMaxTimestampSoFar") : null;
        offsetIndex = Members.field(type, "lazyOffsetIndex");
        timeIndex = Members.field(type, "lazyTimeIndex");
        txnIndex = Members.field(type, "txnIndex");
    }

    void read(Object segment, Reply reply) throws Throwable {
        Object file = log.get(segment);
        if (size == null)
            size = new Members.Reader(file.getClass(), "sizeInBytes");
        reply.add(size.readLong(file));
        reply.add(((Number) bytesSince.get(segment)).longValue());
        reply.add(((Number) created.get(segment)).longValue());
        Options.add(Options.get(rolling.get(segment)), reply);
        Object openOffsets = opened(offsetIndex.get(segment));
        Object openTimes = opened(timeIndex.get(segment));
        if (offsets == null && openOffsets != null)
            offsets = new Mapped(openOffsets.getClass(), "lastOffset");
        if (times == null && openTimes != null)
            times = new Mapped(openTimes.getClass(), "lastEntry");
        largest(segment, openTimes, reply);
        Mapped.add(offsets, openOffsets, reply);
        Mapped.add(times, openTimes, reply);
        Object transactions = txnIndex.get(segment);
        if (txnLast == null)
            txnLast = Members.field(transactions.getClass(), "lastOffset");
        Options.add(Options.get(txnLast.get(transactions)), reply);
    }

    /** Adds the largest timestamp and its offset: two options up to 2.8, then a pair. A missing offset is read from the index. */
    private void largest(Object segment, Object openTimes, Reply reply) throws Throwable {
        if (largest == null) {
            Object timestamp = Options.get(largestTimestamp.get(segment));
            Object offset = Options.get(largestOffset.get(segment));
            Options.add(timestamp, reply);
            if (timestamp != null)
                reply.add(offset != null ? ((Number) offset).longValue() : times.lastOffset(openTimes));
            return;
        }
        Object pair = largest.get(segment);
        if (pairTimestamp == null) {
            pairTimestamp = new Members.Reader(pair.getClass(), "timestamp");
            pairOffset = new Members.Reader(pair.getClass(), "offset");
            unknown = scala ? null : pair.getClass().getField("UNKNOWN").get(null);
        }
        long timestamp = pairTimestamp.readLong(pair);
        long offset = pairOffset.readLong(pair);
        // The Scala class compares values, the Java class compares references.
        boolean known = scala ? timestamp != -1 || offset != -1 : pair != unknown;
        reply.add(known ? 1 : 0);
        if (!known)
            return;
        reply.add(timestamp);
        reply.add(offset);
    }

    /** Returns the index of a LazyIndex, or null if it has not been loaded. */
    private Object opened(Object lazy) throws Throwable {
        if (wrapper == null)
            wrapper = Members.field(lazy.getClass(), "indexWrapper");
        Object inside = wrapper.get(lazy);
        return inside.getClass().getName().endsWith("IndexValue") ? Members.field(inside.getClass(), "index").get(inside) : null;
    }

    /** Closes all open files without changing them. */
    void closeFiles(Object segment) throws Throwable {
        for (Object index : new Object[] {opened(offsetIndex.get(segment)), opened(timeIndex.get(segment))}) {
            if (index == null)
                continue;
            // 4.4 has no closeHandler any more; its close() is what closeHandler() was.
            Method handler = Members.methodOrNull(index.getClass(), "closeHandler", 0);
            Members.call(handler != null ? handler : Members.method(index.getClass(), "close", 0), index);
        }
        Object file = log.get(segment);
        ((Closeable) Members.call(Members.method(file.getClass(), "channel", 0), file)).close();
        Object transactions = txnIndex.get(segment);
        Members.call(Members.method(transactions.getClass(), "close", 0), transactions);
    }

    /** Readers of the state of an offset or time index. */
    private static final class Mapped {
        private final Members.Reader entries;
        private final Members.Reader maxEntries;
        private final Members.Reader length;
        private final Members.Reader last;
        private Members.Reader timestamp;
        private Members.Reader offset;

        Mapped(Class<?> type, String last) {
            entries = new Members.Reader(type, "entries");
            maxEntries = new Members.Reader(type, "maxEntries");
            length = new Members.Reader(type, "length");
            this.last = new Members.Reader(type, last);
        }

        /** Adds 0 for no index, or 1 and its state. */
        static void add(Mapped mapped, Object index, Reply reply) throws Throwable {
            reply.add(mapped == null || index == null ? 0 : 1);
            if (mapped != null && index != null)
                mapped.addState(index, reply);
        }

        private void entry(Object entry) {
            if (timestamp == null) {
                timestamp = new Members.Reader(entry.getClass(), "timestamp");
                offset = new Members.Reader(entry.getClass(), "offset");
            }
        }

        long lastOffset(Object index) throws Throwable {
            Object found = last.read(index);
            entry(found);
            return offset.readLong(found);
        }

        private void addState(Object index, Reply reply) throws Throwable {
            reply.add(entries.readLong(index));
            reply.add(maxEntries.readLong(index));
            reply.add(length.readLong(index));
            Object found = last.read(index);
            reply.add(found instanceof Number ? 1 : 2);
            if (found instanceof Number number) {
                reply.add(number.longValue());
                return;
            }
            entry(found);
            reply.add(timestamp.readLong(found));
            reply.add(offset.readLong(found));
        }
    }
}
