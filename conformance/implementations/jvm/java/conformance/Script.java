package conformance;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A batch of steps, each with its expected results for every set of rules, as
 * {@code conformance/implementations/jvm/step_batch.py} writes them. Each member reads it once, step by step.
 *
 * <pre>
 *   step:        int operation, int number of longs, longs, int length of the bytes, bytes,
 *                and for every set of rules an expectation
 *   expectation: int length of the reply, reply, int number of files, files
 *   file:        int length of the name, name (neither if all are named as before), int length of the content, content
 * </pre>
 */
final class Script {
    static final int NO_FILE = -1;
    /** Instead of an expectation: the same as for the previous set of rules. */
    private static final int AS_BEFORE = -2;
    /** Instead of the number of files, or of a content: what there was after the step before. */
    private static final int UNCHANGED = -2;
    /** Instead of the number of files: the files of the previous step, in its order, with other contents. */
    private static final int NAMED_AS_BEFORE = -3;

    private static final byte[] NONE = {};

    final ByteBuffer bytes;
    private final int rules;
    private final List<Step> steps = new ArrayList<>();
    private int position;

    Script(byte[] bytes, int rules) {
        this.bytes = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
        this.rules = rules;
    }

    /** An operation with its arguments, and an expectation for every set of rules. */
    record Step(int operation, long[] arguments, byte[] bytes, Expectation[] expectations) {
        /** A copy for a driver, which may write into it. */
        byte[] ownBytes() {
            return bytes.length == 0 ? bytes : bytes.clone();
        }

        String text() {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    /** Position and length of a reply (length -1: no reply, the harness compares), and the files. */
    record Expectation(int replyAt, int replyLength, Content[] files) {}

    /** The name of a file, where its content lies, and how long it is; NO_FILE: there is no such file. */
    record Content(String name, int at, int length) {
        /** Whether it is of the same name, and there is such a file in both or in none. */
        boolean isNamedAs(Content other) {
            return name.equals(other.name) && (length == NO_FILE) == (other.length == NO_FILE);
        }
    }

    /** The step of that number, from 0 on. */
    synchronized Step step(int number) {
        while (steps.size() <= number)
            steps.add(next(steps.isEmpty() ? null : steps.get(steps.size() - 1)));
        return steps.get(number);
    }

    private Step next(Step before) {
        int operation = nextInt();
        long[] arguments = new long[nextInt()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = bytes.getLong(position);
            position += Long.BYTES;
        }
        byte[] own = nextBytes();
        Expectation[] expectations = new Expectation[rules];
        for (int number = 0; number < rules; number++)
            expectations[number] = expectation(
                number == 0 ? null : expectations[number - 1], before == null ? null : before.expectations[number]);
        return new Step(operation, arguments, own, expectations);
    }

    private Expectation expectation(Expectation neighbour, Expectation before) {
        int reply = nextInt();
        if (reply == AS_BEFORE)
            return neighbour;
        int at = position;
        position += Math.max(reply, 0);
        int count = nextInt();
        if (count == UNCHANGED)
            return new Expectation(at, reply, before.files);
        Content[] named = count == NAMED_AS_BEFORE ? before.files : null;
        Content[] files = new Content[named == null ? count : named.length];
        for (int i = 0; i < files.length; i++) {
            String name = named == null ? new String(nextBytes(), StandardCharsets.UTF_8) : named[i].name;
            int length = nextInt();
            files[i] = length == UNCHANGED ? content(name, before) : new Content(name, position, length);
            if (length > 0)
                position += length;
        }
        return new Expectation(at, reply, files);
    }

    private static Content content(String name, Expectation before) {
        for (Content content : before.files)
            if (content.name.equals(name))
                return content;
        throw new IllegalStateException("no content of " + name);
    }

    private byte[] nextBytes() {
        int length = nextInt();
        if (length == 0)
            return NONE;
        byte[] found = new byte[length];
        bytes.get(position, found);
        position += found.length;
        return found;
    }

    private int nextInt() {
        int value = bytes.getInt(position);
        position += Integer.BYTES;
        return value;
    }
}
