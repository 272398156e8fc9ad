package conformance;

import java.io.File;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Log in which every batch gets an index entry. Reading operations have variants with a suffix, such as readBelow. */
final class TargetLog extends Target {
    private static final String TOPIC = "t-0";
    private static final int SEGMENT_BYTES = 1 << 20;
    private static final int EXPIRATION_MS = 86_400_000;
    private static final int ALL_BYTES = 1 << 20;
    private static final long MAX_TIMESTAMP = -3;
    private static final int REPLY_BYTES = 1 << 12;

    private final LogEnvironment environment;
    private final LogAdapter adapter;
    private final Map<String, byte[]> batches;
    private File directory;

    TargetLog(ClassLoader loader, Map<String, byte[]> batches) throws Throwable {
        this.batches = batches;
        environment = new LogEnvironment(loader);
        adapter = new LogAdapter(loader, environment);
        environment.setClock(EXPIRATION_MS);
    }

    @Override
    void open(File parent) throws Throwable {
        directory = new File(parent, TOPIC);
        directory.mkdirs();
        empty(directory);
        environment.forgetTasks();
        load();
    }

    private void load() throws Throwable {
        Map<String, String> settings = new HashMap<>(Map.of(
            "segment.bytes", Integer.toString(SEGMENT_BYTES), "segment.index.bytes", "240",
            "index.interval.bytes", "0", "retention.ms", "-1", "retention.bytes", "-1",
            "producer.id.expiration.ms", Integer.toString(EXPIRATION_MS),
            "transaction.partition.verification.enable", "0"));
        adapter.open(directory, settings, 0, Long.MAX_VALUE, true);
    }

    @Override
    Object execute(String[] words) throws Throwable {
        long number = words.length > 1 ? Long.parseLong(words[1]) : 0;
        switch (words[0].replaceAll("(Below|Above|Expired)$", "")) {
            case "reopen" -> {
                adapter.close(true);
                load();
            }
            case "append" -> adapter.appendAsFollower(batches.get(words[1] + " " + words[2]).clone(), 0);
            case "roll" -> adapter.roll();
            case "truncateTo", "truncateToWatermark", "truncateBelowWatermark" -> adapter.truncateTo(number);
            case "truncateFully" -> adapter.truncateFullyAndStartAt(number);
            case "watermark" -> {
                adapter.updateHighWatermark(number);
                return offsets();  // computes the position of the high watermark, which Kafka caches for fetches
            }
            case "startAt" -> adapter.incrementStart(number);
            case "deleteSegments" -> adapter.deleteOldSegments();
            case "deleteFiles" -> environment.runTasks();
            case "close" -> adapter.close(false);
            case "read" -> {
                return read(number, words[0].endsWith("Above") ? "LOG_END" : "HIGH_WATERMARK");
            }
            case "time" -> {
                return time(number);
            }
            case "maxTimestamp" -> {
                return time(MAX_TIMESTAMP);
            }
            case "entry" -> {
                Object segment = adapter.segmentOf(number);
                Object index = Members.call(Members.method(segment.getClass(), "offsetIndex", 0), segment);
                return call(index.getClass(), index, new String[] {"lookup", words[1]});
            }
            case "offsets" -> {
                return offsets();
            }
            default -> throw new UnsupportedOperationException(words[0]);
        }
        return null;
    }

    /** Returns the offsets and timestamps of the batches that a fetch returns. */
    private Object read(long start, String isolation) throws Throwable {
        StringBuilder text = new StringBuilder();
        Object records = LogFetch.records(adapter.fetch(start, ALL_BYTES, isolation, true));
        for (Object batch : (Iterable<?>) Members.call(Members.method(records.getClass(), "batches", 0), records))
            text.append(new Members.Reader(batch.getClass(), "lastOffset").readLong(batch)).append('@')
                .append(new Members.Reader(batch.getClass(), "maxTimestamp").readLong(batch)).append(' ');
        return text.isEmpty() ? "nothing" : text.toString().trim();
    }

    /** Returns the offset and timestamp that ListOffsets returns. */
    private Object time(long target) throws Throwable {
        List<Long> numbers = numbers(reply -> adapter.fetchOffset(target, reply));
        return numbers.get(0) == 0 ? "nothing" : numbers.get(2) + "@" + numbers.get(1);
    }

    /** Returns log start offset, log end offset, high watermark and LSO. */
    private Object offsets() throws Throwable {
        return numbers(adapter::offsetSnapshot).toString();
    }

    private interface Query {
        void run(Reply reply) throws Throwable;
    }

    private static List<Long> numbers(Query query) throws Throwable {
        ByteBuffer buffer = ByteBuffer.allocate(REPLY_BYTES);
        Reply reply = new Reply(buffer, Map.of());
        reply.begin();
        query.run(reply);
        reply.endValue();
        List<Long> numbers = new ArrayList<>();
        for (int i = 0; i < buffer.getLong(Long.BYTES); i++)
            numbers.add(buffer.getLong((3 + i) * Long.BYTES));
        return numbers;
    }

    @Override
    String[] probes() {
        return new String[] {"offsets", "maxTimestamp", "readAbove 0"};
    }

    @Override
    void close() {
        adapter.abandon();
    }
}
