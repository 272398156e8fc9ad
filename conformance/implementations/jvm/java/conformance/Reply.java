package conformance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Observation of an operation as native longs, which Python reads without another call.
 *
 * <pre>
 *   0 error kind (0: none, -1: an exception without a kind)
 *   1 number of values, -1 for "nothing"     2 number of longs of state, 0 if nothing is open
 *   3... value, then state: as conformance/implementations/jvm/rows.py reads them
 * </pre>
 */
final class Reply {
    private static final int BODY = 3;
    /** Added to the number of an error kind whose text is not compared. */
    private static final int SILENT = 1 << 8;
    /** Replaces the length of a text: any text is accepted. */
    private static final long ANY_TEXT = -2;
    private static final Pattern MODIFIED = Pattern.compile("lastModifiedTime=(\\d+)");

    private final ByteBuffer buffer;
    private final Map<String, Integer> kinds;
    private int length;
    /** Suffix of the name of an exception whose kind depends on its text: it has another kind without these words. */
    private static final String WITHOUT_VERSION = " without a version";
    private static final String VERSION = "aborted transaction version";
    private String text;
    private boolean silent;
    private String directory = "";

    Reply(ByteBuffer buffer, Map<String, Integer> kinds) {
        this.buffer = buffer.order(ByteOrder.nativeOrder());
        this.kinds = kinds;
    }

    /** Sets the directory that is removed from texts before they are compared. */
    void inside(String directory) {
        this.directory = directory;
    }

    private void set(int slot, long value) {
        buffer.putLong(slot * Long.BYTES, value);
    }

    void begin() {
        text = null;
        silent = false;
        length = 0;
        set(0, 0);
        set(1, -1);
        set(2, 0);
    }

    void add(long value) {
        set(BODY + length++, value);
    }

    /** Ends the value, which is the longs added so far. */
    void endValue() {
        set(1, length == 0 ? -1 : length);
    }

    void failed(Throwable thrown) {
        length = 0;
        text = thrown.getMessage();
        for (Class<?> type = thrown.getClass(); type != null; type = type.getSuperclass()) {
            Integer kind = kinds.get(type.getName() + (text != null && text.contains(VERSION) ? "" : WITHOUT_VERSION));
            if (kind == null)
                kind = kinds.get(type.getName());
            if (kind != null) {
                set(0, kind % SILENT);
                silent = kind >= SILENT;
                return;
            }
        }
        set(0, -1);
        java.io.StringWriter trace = new java.io.StringWriter();
        thrown.printStackTrace(new java.io.PrintWriter(trace));
        text = trace.toString();
    }

    /** Replaces a number that was added at a mark. */
    void replace(int mark, long value) {
        set(BODY + mark, value);
    }

    int mark() {
        return length;
    }

    /** Ends the state, which is the longs added since the mark. */
    void endState(int mark) {
        set(2, length - mark);
    }

    String text() {
        return text;
    }

    /**
     * Returns true if the reply equals these bytes: the longs, the length of the text (-1 for none, ANY_TEXT for any),
     * the text. If {@code bytes} is -1, no reply is equal.
     */
    boolean is(ByteBuffer expected, int at, int bytes) {
        if (bytes < 0)
            return false;
        long values = Math.max(expected.getLong(at + Long.BYTES), 0) + expected.getLong(at + 2 * Long.BYTES);
        int size = (BODY + (int) values) * Long.BYTES;
        if (buffer.slice(0, size).mismatch(expected.slice(at, size)) >= 0)
            return false;
        long textBytes = expected.getLong(at + size);
        if (textBytes == ANY_TEXT)
            return true;
        String told = silent ? null : comparable(text, directory);
        if (told == null || textBytes < 0)
            return told == null && textBytes < 0;
        byte[] wanted = new byte[(int) textBytes];
        expected.get(at + size + Long.BYTES, wanted);
        return told.equals(new String(wanted, StandardCharsets.UTF_8));
    }

    /** Adds the outcome of an operation, the state and the text, as far as they are compared, to a digest. */
    void addTo(Digest digest, int operation) {
        int values = (int) (Math.max(buffer.getLong(Long.BYTES), 0) + buffer.getLong(2 * Long.BYTES));
        digest.count(operation, buffer.getLong(0), buffer.getLong(Long.BYTES) >= 0);
        digest.add(buffer, (BODY + values) * Long.BYTES);
        digest.add(silent ? null : comparable(text, directory));
    }

    /** Returns a text without the directory and without modification times, which always differ. */
    private static String comparable(String text, String directory) {
        if (text == null)
            return null;
        Matcher found = MODIFIED.matcher(text);
        String same = found.find() ? text.replace(found.group(1), "MODIFIED") : text;
        return same.replace(directory + "/", "").replace(directory + ".source", "SOURCE");
    }
}
