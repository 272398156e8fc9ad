package conformance;

import java.io.ByteArrayOutputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.List;

/** Fetches of a log with the places of offsets in files: FetchDataInfo, LogOffsetMetadata and LogOffsetSnapshot. */
final class LogFetch {
    /** The limits of a fetch, as in conformance/operations/log.py. */
    private static final List<String> ISOLATIONS = List.of("LOG_END", "HIGH_WATERMARK", "TXN_COMMITTED");
    private static final List<String> LIMITS = List.of("logEndOffset", "highWatermark", "lastStableOffset");

    private final LogAdapter adapter;
    private final Method raise;
    private final Method snapshot;
    private final Members.Reader endOffset;
    private Class<?> type;
    private Members.Reader[] place;
    /** What the last fetch returned as the place of its offset, or null. */
    private Object fetched;

    LogFetch(LogAdapter adapter, Class<?> log) {
        this.adapter = adapter;
        raise = Members.method(log, "maybeIncrementHighWatermark", 1);
        snapshot = Members.method(log, "fetchOffsetSnapshot", 0);
        endOffset = new Members.Reader(log, "logEndOffset");
    }

    void forget() {
        fetched = null;
    }

    /** Adds place, size and aborted transactions of a fetch. */
    void fetch(long offset, int maxBytes, int isolation, boolean whole, Reply reply) throws Throwable {
        Object data = adapter.fetch(offset, maxBytes, ISOLATIONS.get(isolation), whole);
        fetched = metadata(data);
        addPlace(fetched, reply);
        Object records = records(data);
        reply.add(((Number) Members.call(records.getClass().getMethod("sizeInBytes"), records)).longValue());
        reply.add((Boolean) new Members.Reader(data.getClass(), "firstEntryIncomplete").read(data) ? 1 : 0);
        Object aborted = Options.get(new Members.Reader(data.getClass(), "abortedTransactions").read(data));
        List<?> transactions = aborted == null ? List.of() : Options.list(aborted);
        reply.add(aborted == null ? -1 : transactions.size());
        for (Object each : transactions)
            for (String name : new String[] {"producerId", "firstOffset"})
                reply.add(new Members.Reader(each.getClass(), name).readLong(each));
    }

    /** Adds the limit of a fetch, and what DelayedFetch asks about it and the fetched offset. */
    void bytesAfter(long offset, int isolation, Reply reply) throws Throwable {
        Object start = metadata(adapter.fetch(offset, 1, ISOLATIONS.get(isolation), true));
        Object offsets = Members.call(snapshot, adapter.log());
        Object limit = new Members.Reader(offsets.getClass(), LIMITS.get(isolation)).read(offsets);
        Method onOlderSegment = Members.method(limit.getClass(), "onOlderSegment", 1);
        boolean isOlder = (Boolean) Members.call(onOlderSegment, limit, start);
        boolean isNewer = (Boolean) Members.call(onOlderSegment, start, limit);
        boolean isSame = (Boolean) Members.call(Members.method(limit.getClass(), "onSameSegment", 1), limit, start);
        Method difference = Members.method(limit.getClass(), "positionDiff", 1);
        long bytes = isSame ? ((Number) Members.call(difference, limit, start)).longValue() : -1;
        addPlace(limit, reply);
        reply.add(isOlder ? 1 : 0);
        reply.add(isNewer ? 1 : 0);
        reply.add(bytes);
    }

    /** Raises the high watermark to an offset with a place; adds the previous one, or nothing if it remains. */
    void raiseHighWatermark(long offset, Reply reply) throws Throwable {
        Object known = fetched;
        if (known == null || offsetOf(known) != offset)
            known = offset > endOffset.readLong(adapter.log()) ? unplaced(offset)
                : metadata(adapter.fetch(offset, 1, "LOG_END", true));
        Object previous = Options.get(Members.call(raise, adapter.log(), known));
        if (previous != null)
            addPlace(previous, reply);
    }

    /** Returns an offset without a place. */
    private Object unplaced(long offset) throws Throwable {
        return Members.create(Members.constructor(raise.getParameterTypes()[0], 3), offset, -1L, -1);
    }

    /** Returns the records in the result of a fetch. */
    static Object records(Object data) throws Throwable {
        return new Members.Reader(data.getClass(), "records").read(data);
    }

    /** Returns the bytes that a broker sends of records: first one half of them, then all others. */
    static byte[] sent(Object records, int size) throws Throwable {
        Method writeTo = Members.longestOrNull(records.getClass(), "writeTo");
        Class<?>[] parameters = writeTo.getParameterTypes();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Object channel = Proxy.newProxyInstance(parameters[0].getClassLoader() == null
            ? LogFetch.class.getClassLoader() : parameters[0].getClassLoader(), new Class<?>[] {parameters[0]},
            (proxy, method, arguments) -> switch (method.getName()) {
                case "transferFrom" -> {
                    ByteBuffer read = ByteBuffer.allocate((int) (long) (Long) arguments[2]);
                    ((FileChannel) arguments[0]).read(read, (Long) arguments[1]);
                    yield (long) add(read.flip(), bytes);
                }
                case "write" -> add((ByteBuffer) arguments[0], bytes);
                case "isOpen" -> true;
                default -> throw new UnsupportedOperationException(method.getName());
            });
        boolean limitsItself = parameters[1] == int.class;  // older releases may send what follows the records
        for (int[] part : new int[][] {{0, size / 2}, {size / 2, limitsItself ? Integer.MAX_VALUE : size - size / 2}}) {
            Object from = limitsItself ? (Object) part[0] : (Object) (long) part[0];
            Members.call(writeTo, records, channel, from, part[1]);
        }
        return bytes.toByteArray();
    }

    private static int add(ByteBuffer from, ByteArrayOutputStream to) {
        byte[] read = new byte[from.remaining()];
        from.get(read);
        to.writeBytes(read);
        return read.length;
    }

    private static Object metadata(Object data) throws Throwable {
        return new Members.Reader(data.getClass(), "fetchOffsetMetadata").read(data);
    }

    private Members.Reader[] readers(Object metadata) {
        if (metadata.getClass() != type) {
            type = metadata.getClass();
            place = Members.readers(type, "messageOffset", "segmentBaseOffset", "relativePositionInSegment");
        }
        return place;
    }

    private long offsetOf(Object metadata) throws Throwable {
        return readers(metadata)[0].readLong(metadata);
    }

    private void addPlace(Object metadata, Reply reply) throws Throwable {
        for (Members.Reader reader : readers(metadata))
            reply.add(reader.readLong(metadata));
    }
}
