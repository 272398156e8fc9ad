package conformance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;

/**
 * The observation of an operation on a log, as native longs that Python reads without another call.
 *
 * <pre>
 *   0 error kind (0: none, -1: an exception that no kind is known for)
 *   1 number of values, -1 for "nothing"     2 number of longs of state, 0 for "no log is open"
 *   3... values, then state
 * </pre>
 */
final class LogReply {
    private static final int BODY = 3;

    private final ByteBuffer buffer;
    private final Map<String, Integer> kinds;
    private int length;
    private String text;

    LogReply(ByteBuffer buffer, Map<String, Integer> kinds) {
        this.buffer = buffer.order(ByteOrder.nativeOrder());
        this.kinds = kinds;
    }

    private void set(int slot, long value) {
        buffer.putLong(slot * Long.BYTES, value);
    }

    void begin() {
        text = null;
        length = 0;
        set(0, 0);
        set(1, -1);
        set(2, 0);
    }

    void add(long value) {
        set(BODY + length++, value);
    }

    /** The longs added so far are the value. */
    void endValue() {
        set(1, length == 0 ? -1 : length);
    }

    void refused(Throwable thrown) {
        length = 0;
        text = thrown.getMessage();
        for (Class<?> type = thrown.getClass(); type != null; type = type.getSuperclass()) {
            Integer kind = kinds.get(type.getName());
            if (kind != null) {
                set(0, kind);
                return;
            }
        }
        set(0, -1);
        java.io.StringWriter trace = new java.io.StringWriter();
        thrown.printStackTrace(new java.io.PrintWriter(trace));
        text = trace.toString();
    }

    int mark() {
        return length;
    }

    /** The longs added since the mark are the state. */
    void endState(int mark) {
        set(2, length - mark);
    }

    void put(int at, long value) {
        set(BODY + at, value);
    }

    String text() {
        return text;
    }
}
