package conformance;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Many short cases, each from an empty start, executed in one call from Python. A case ends at its first step with
 * another result than expected; the next case begins whatever has happened in the previous one.
 *
 * <pre>
 *   case: number of following longs, steps
 *   step: request, length of the reply or of a content, reply or content
 * </pre>
 *
 * {@code conformance/implementations/jvm/cases.py} writes them.
 */
public final class Cases {
    /** Added to the number of an operation that changes nothing: its reply has no state. */
    private static final int ASKED = 1000;
    /** Instead of the length of a content to compare with: the content that was written last. */
    private static final int AS_WRITTEN = -2;

    private final Driver driver;
    private final Operations operations;
    private final String directory;
    private final WatchedFiles files;
    private boolean[][] reached = {};
    private boolean[][] known = {};
    private volatile int executing;
    private volatile int begun;
    private Steps steps;
    private Steps.Content written;

    /** directory: the directory of all cases, as for the driver's begin; their files are overwritten. */
    public Cases(Driver driver, String directory) {
        this.driver = driver;
        operations = driver.operations();
        this.directory = directory;
        files = new WatchedFiles(driver);
        files.keep(Integer.MAX_VALUE);
    }

    /**
     * Reports from now on which cases reach new code: the arrays are the probes of classes. Later calls may append more
     * arrays.
     */
    public void watch(boolean[][] probes) {
        boolean[][] before = known;
        known = new boolean[probes.length][];
        for (int i = 0; i < probes.length; i++)
            known[i] = i < before.length ? before[i] : new boolean[probes[i].length];
        reached = probes;
    }

    /** Returns the number of the case in progress, from 0 on; any thread may call it. */
    public int executing() {
        return executing;
    }

    /** Returns the number of its started operations, without operations on files; any thread may call it. */
    public int begun() {
        return begun;
    }

    /**
     * Executes cases. The result has two ints for each: the number of the first differing step, from 0 on, or -1; and 1 if
     * it has reached code that no earlier case has reached.
     */
    public int[] execute(ByteBuffer scripts, int cases) {
        steps = new Steps(scripts);
        int[] answers = new int[2 * cases];
        for (int number = 0; number < cases; number++) {
            int longs = steps.nextInt();
            int end = steps.position + Long.BYTES * longs;
            executing = number;
            begun = 0;
            driver.begin(directory);
            answers[2 * number] = firstDifference(end);
            driver.abandon();
            answers[2 * number + 1] = isNew() ? 1 : 0;
            steps.position = end;
        }
        return answers;
    }

    private int firstDifference(int end) {
        for (int step = 0; steps.position < end; step++) {
            Steps.Request request = steps.nextRequest();
            int length = steps.nextInt();
            if (!isAsExpected(request, steps.skip(length), length))
                return step;
        }
        return -1;
    }

    private boolean isAsExpected(Steps.Request request, int at, int length) {
        int operation = request.operation();
        try {
            if (operation == Steps.WRITE) {
                files.write(request.text(), steps.bytes, at, length);
                if (length != Steps.NO_FILE)
                    written = new Steps.Content("", at, length);
                return true;
            }
            if (operation == Steps.COMPARE) {
                boolean isWritten = length == AS_WRITTEN;
                return files.holdsOne(steps.bytes, new Steps.Content(
                    request.text(), isWritten ? written.at() : at, isWritten ? written.length() : length));
            }
        } catch (IOException unreadable) {
            return false;
        }
        begun++;  // only this thread writes it
        if (operation >= ASKED) {
            driver.ask(operations.name(operation - ASKED), request.arguments(), request.bytes());
        } else {
            if (operations.mayReplaceFiles(operation))
                files.doubt();
            driver.execute(operations.name(operation), request.arguments(), request.bytes());
        }
        return driver.replied(steps.bytes, at, length);
    }

    private boolean isNew() {
        boolean found = false;
        for (int i = 0; i < reached.length; i++) {
            if (!Arrays.equals(reached[i], known[i])) {
                System.arraycopy(reached[i], 0, known[i], 0, known[i].length);
                found = true;
            }
        }
        return found;
    }
}
