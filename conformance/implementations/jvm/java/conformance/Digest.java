package conformance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;

/** Digest of the results of a case: one of everything that is compared, and one of the kinds of outcomes alone. */
final class Digest {
    private static final long FACTOR = 0x9E3779B97F4A7C15L;

    private long value;
    /** How often each kind of outcome occurred. */
    private final Map<Long, Integer> counts = new HashMap<>();

    void clear() {
        value = 0;
        counts.clear();
    }

    /** Adds a number; the order of the numbers counts. */
    void add(long number) {
        value = mixed(value ^ number);
    }

    /** Adds the first bytes of a buffer. */
    void add(ByteBuffer bytes, int length) {
        ByteBuffer ordered = bytes.order(ByteOrder.nativeOrder());
        int at = 0;
        for (; at + Long.BYTES <= length; at += Long.BYTES)
            add(ordered.getLong(at));
        for (; at < length; at++)
            add(ordered.get(at));
    }

    /** Adds a text, which may be missing. */
    void add(String text) {
        add(text == null ? -1 : text.length());
        for (int at = 0; text != null && at < text.length(); at++)
            add(text.charAt(at));
    }

    /** Counts an outcome: the number of the operation, the kind of its error, and whether it has a value. */
    void count(int operation, long kind, boolean hasValue) {
        counts.merge((512L * operation + kind) * 2 + (hasValue ? 1 : 0), 1, Integer::sum);
    }

    /** Digest of everything. */
    long value() {
        return value;
    }

    /** Digest of the kinds of outcomes, and of how often each occurred, roughly; their order does not count. */
    long signature() {
        long sum = 0;
        for (Map.Entry<Long, Integer> each : counts.entrySet())
            sum += mixed(mixed(each.getKey()) + Integer.numberOfLeadingZeros(each.getValue()));
        return sum;
    }

    private static long mixed(long number) {
        long product = (number ^ number >>> 32) * FACTOR;
        return product ^ product >>> 29;
    }
}
