package conformance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Steps to be performed one after the other, each with what has to come of it in every set of rules, as
 * {@code conformance/implementations/jvm/script.py} writes them; and one reader's place among them.
 *
 * <pre>
 *   step:        int operation, 5 longs, int length of the text, text, and for every set of rules an expectation
 *   expectation: int length of the reply, int length of the file, reply, file
 * </pre>
 */
final class Script {
    static final int NO_FILE = -1;
    /** Instead of an expectation: that of the set of rules before this one. */
    private static final int AS_BEFORE = -2;
    /** The file is what it was after the step before. */
    private static final int UNCHANGED = -2;

    final ByteBuffer bytes;
    private final int rules;
    private int position;

    int operation;
    final long[] arguments = new long[5];
    String text;
    /** Where the reply and the file of each set of rules lie, and how long they are. */
    final int[] replyAt;
    final int[] replyLength;
    final int[] fileAt;
    final int[] fileLength;

    Script(byte[] bytes, int rules) {
        this.bytes = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
        this.rules = rules;
        replyAt = new int[rules];
        replyLength = new int[rules];
        fileAt = new int[rules];
        fileLength = new int[rules];
    }

    /** Goes on to the next step. */
    void next() {
        operation = nextInt();
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = bytes.getLong(position);
            position += Long.BYTES;
        }
        int length = nextInt();
        text = length == 0 ? "" : new String(bytes.array(), position, length, StandardCharsets.UTF_8);
        position += length;
        for (int number = 0; number < rules; number++)
            expect(number);
    }

    private void expect(int number) {
        int reply = nextInt();
        if (reply == AS_BEFORE) {
            replyAt[number] = replyAt[number - 1];
            replyLength[number] = replyLength[number - 1];
            fileAt[number] = fileAt[number - 1];
            fileLength[number] = fileLength[number - 1];
            return;
        }
        int file = nextInt();
        replyAt[number] = position;
        replyLength[number] = reply;
        position += Math.max(reply, 0);
        if (file == UNCHANGED)
            return;
        fileAt[number] = position;
        fileLength[number] = file;
        position += Math.max(file, 0);
    }

    private int nextInt() {
        int value = bytes.getInt(position);
        position += Integer.BYTES;
        return value;
    }
}
