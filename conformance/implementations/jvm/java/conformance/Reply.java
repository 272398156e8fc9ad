package conformance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * The observation of an operation, where Python reads it without another call: a row of native longs, and the text.
 *
 * <pre>
 *   0 error kind (0: none, -1: an exception that no kind is known for)
 *   1 number of values, -1 for "nothing"      2 entries  3 max entries, -1 if it knows none  4 full  5 length
 *   6 number of longs in `last`, -1 for "no index has been opened"      7, 8 last
 *   9 bytes of the refusal's text, -1 for none      10... values, or the text in UTF-8
 * </pre>
 *
 * What is not used is zero, so that two replies are the same if their bytes are.
 */
final class Reply {
    private static final int VALUES = 10;
    /** Added to the number of a kind whose text is Java's or the operating system's, and is not told. */
    private static final int SILENT = 1 << 8;

    private final ByteBuffer buffer;
    private final Map<String, Integer> kinds;
    private int values;
    private String directory = "";

    Reply(ByteBuffer buffer, Map<String, Integer> kinds) {
        this.buffer = buffer.order(ByteOrder.nativeOrder());
        this.kinds = kinds;
    }

    /** Texts tell no directory: it is left out of every path that begins with it. */
    void inside(String directory) {
        this.directory = directory;
    }

    void begin() {
        values = -1;
        for (int slot = 0; slot < VALUES; slot++)
            set(slot, 0);
        set(6, -1);
        set(9, -1);
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
        for (Class<?> type = thrown.getClass(); type != null; type = type.getSuperclass()) {
            Integer kind = kinds.get(type.getName());
            if (kind != null) {
                set(0, kind % SILENT);
                tell(kind < SILENT ? thrown.getMessage() : null);
                return;
            }
        }
        set(0, -1);
        tell(thrown.toString());
    }

    private void tell(String text) {
        if (text == null)
            return;
        byte[] bytes = text.replace(directory, "").getBytes(StandardCharsets.UTF_8);
        set(9, bytes.length);
        buffer.put(VALUES * Long.BYTES, bytes);
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

    /** Whether it is these bytes, as far as they go; a length of -1 equals no reply. */
    boolean is(ByteBuffer expected, int at, int length) {
        return length >= 0 && buffer.slice(0, length).mismatch(expected.slice(at, length)) < 0;
    }
}
