package conformance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;

/**
 * What came of an operation, written where Python reads it without another call: a row of native longs.
 *
 * <pre>
 *   0 error kind (0: none, -1: an exception that no kind is known for)
 *   1 number of values, -1 for "nothing"      2 entries  3 max entries  4 full  5 length
 *   6 number of longs in `last`, -1 for "no index has been opened"      7, 8 last      9... values
 * </pre>
 */
final class Reply {
    private static final int VALUES = 9;

    private final ByteBuffer buffer;
    private final Map<String, Integer> kinds;
    private int values;
    private String text;

    Reply(ByteBuffer buffer, Map<String, Integer> kinds) {
        this.buffer = buffer.order(ByteOrder.nativeOrder());
        this.kinds = kinds;
    }

    void begin() {
        values = -1;
        text = null;
        set(0, 0);
        noState();
    }

    private void set(int slot, long value) {
        buffer.putLong(slot * Long.BYTES, value);
    }

    /** Says that there is a value, even if no long follows: an empty list. */
    void list() {
        values = Math.max(values, 0);
    }

    void add(long value) {
        list();
        set(VALUES + values++, value);
    }

    void refused(Throwable thrown) {
        values = -1;
        text = thrown.getMessage();
        for (Class<?> type = thrown.getClass(); type != null; type = type.getSuperclass()) {
            Integer kind = kinds.get(type.getName());
            if (kind != null) {
                set(0, kind);
                return;
            }
        }
        set(0, -1);
        text = thrown.toString();
    }

    void noState() {
        set(6, -1);
    }

    void state(long entries, long maxEntries, boolean full, long length, long... last) {
        set(2, entries);
        set(3, maxEntries);
        set(4, full ? 1 : 0);
        set(5, length);
        set(6, last.length);
        for (int i = 0; i < last.length; i++)
            set(7 + i, last[i]);
    }

    void end() {
        set(1, values);
    }

    String text() {
        return text;
    }
}
