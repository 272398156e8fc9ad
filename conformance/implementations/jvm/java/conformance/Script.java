package conformance;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Batch of steps, each with its expected results for every set of rules. Each release reads it once, step by step.
 *
 * <pre>
 *   step:        request, and for every set of rules an expectation
 *   expectation: length of the reply, reply, number of files, files
 *   file:        length of the name, name (both are omitted if no name has changed), content
 * </pre>
 */
final class Script extends Steps {
    /** Replaces an expectation that is the same as for the previous set of rules. */
    private static final int AS_BEFORE = -2;
    /** Replaces the number of files, or a content, that is as after the previous step. */
    private static final int UNCHANGED = -2;
    /** Replaces the number of files if only the contents differ from the previous step. */
    private static final int NAMED_AS_BEFORE = -3;

    private final int rules;
    private final List<Step> steps = new ArrayList<>();

    Script(byte[] bytes, int rules) {
        super(ByteBuffer.wrap(bytes));
        this.rules = rules;
    }

    /** Request, and an expectation for every set of rules. */
    record Step(Request request, Expectation[] expectations) {}

    /** Position and length of a reply (length -1: no reply, the harness compares), and the files. */
    record Expectation(int replyAt, int replyLength, Content[] files) {}

    /** Returns the step with that number (from 0). */
    synchronized Step step(int number) {
        while (steps.size() <= number)
            steps.add(next(steps.isEmpty() ? null : steps.get(steps.size() - 1)));
        return steps.get(number);
    }

    private Step next(Step before) {
        Request request = nextRequest();
        Expectation[] expectations = new Expectation[rules];
        for (int number = 0; number < rules; number++)
            expectations[number] = expectation(
                number == 0 ? null : expectations[number - 1], before == null ? null : before.expectations[number]);
        return new Step(request, expectations);
    }

    private Expectation expectation(Expectation neighbour, Expectation before) {
        int reply = nextInt();
        if (reply == AS_BEFORE)
            return neighbour;
        int at = skip(reply);
        int count = nextInt();
        if (count == UNCHANGED)
            return new Expectation(at, reply, before.files);
        Content[] named = count == NAMED_AS_BEFORE ? before.files : null;
        Content[] files = new Content[named == null ? count : named.length];
        for (int i = 0; i < files.length; i++) {
            String name = named == null ? new String(nextBytes(), StandardCharsets.UTF_8) : named[i].name();
            int length = nextInt();
            files[i] = length == UNCHANGED ? content(name, before) : new Content(name, skip(length), length);
        }
        return new Expectation(at, reply, files);
    }

    private static Content content(String name, Expectation before) {
        for (Content content : before.files)
            if (content.name().equals(name))
                return content;
        throw new IllegalStateException("no content of " + name);
    }
}
