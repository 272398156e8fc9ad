package conformance;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Many short cases, each from an empty start, executed in one call from Python. The results are compared with expected
 * ones, or digested. The next case begins whatever has happened in the previous one.
 *
 * <pre>
 *   case: number of following longs, steps
 *   step: request, length of the reply or of a content, reply or content
 * </pre>
 *
 * {@code conformance/implementations/jvm/cases.py} writes them.
 */
public final class Cases {
    /** Added to the number of a read-only operation, so that its reply has no state. */
    private static final int WITHOUT_STATE = 1000;
    /** Replaces the length of an expected content: the content that was written last is expected. */
    private static final int AS_WRITTEN = -2;

    private final Driver driver;
    private final Operations operations;
    private final String directory;
    private final WatchedFiles files;
    private final Digest digest = new Digest();
    private boolean[][] reached = {};
    private boolean[][] known = {};
    private volatile int executing;
    private volatile int begun;
    private Steps steps;
    private Steps.Content written;

    /** directory: the directory of all cases, as for Driver.begin; each case overwrites the files of the previous one. */
    public Cases(Driver driver, String directory) {
        this.driver = driver;
        operations = driver.operations();
        this.directory = directory;
        files = new WatchedFiles(driver);
        files.keep(Integer.MAX_VALUE);
    }

    /**
     * Reports from now on which cases reach new code. The arrays are JaCoCo's probes, one array per class; later calls may
     * append arrays.
     */
    public void watch(boolean[][] probes) {
        boolean[][] before = known;
        known = new boolean[probes.length][];
        for (int i = 0; i < probes.length; i++)
            known[i] = i < before.length ? before[i] : new boolean[probes[i].length];
        reached = probes;
    }

    /** Returns the number (from 0) of the case in progress; any thread may call it. */
    public int executing() {
        return executing;
    }

    /** Returns how many operations of the case in progress have begun, without those on files; any thread may call it. */
    public int begun() {
        return begun;
    }

    /** Executes one case, whose steps end at a position; its results belong to a number. */
    private interface Case {
        void run(int number, int end);
    }

    /**
     * Executes cases. The result has two ints per case: the number (from 0) of the first differing step, or -1; and 1 if
     * the case reached code that no earlier case reached.
     */
    public int[] execute(ByteBuffer scripts, int cases) {
        int[] answers = new int[2 * cases];
        each(scripts, cases, (number, end) -> {
            answers[2 * number] = firstDifference(end);
            answers[2 * number + 1] = finish();
        });
        return answers;
    }

    /**
     * Executes cases whose expected results are missing. The result has three longs for each: a digest of all replies and
     * files, a digest of the kinds of outcomes, and 1 if it has reached code that no earlier case has reached.
     */
    public long[] digest(ByteBuffer scripts, int cases) {
        long[] answers = new long[3 * cases];
        each(scripts, cases, (number, end) -> {
            digest.clear();
            while (steps.position < end)
                addStep(steps.nextRequest());
            answers[3 * number] = digest.value();
            answers[3 * number + 1] = digest.signature();
            answers[3 * number + 2] = finish();
        });
        return answers;
    }

    private void each(ByteBuffer scripts, int cases, Case body) {
        steps = new Steps(scripts);
        for (int number = 0; number < cases; number++) {
            int longs = steps.nextInt();
            int end = steps.position + Long.BYTES * longs;
            executing = number;
            begun = 0;
            driver.begin(directory);
            body.run(number, end);
            steps.position = end;
        }
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

    private void addStep(Steps.Request request) {
        int length = steps.nextInt();
        int at = steps.skip(length);
        try {
            if (request.operation() == Steps.WRITE) {
                files.write(request.text(), steps.bytes, at, length);
            } else if (request.operation() == Steps.COMPARE) {
                files.addTo(digest, request.text());
            } else {
                execute(request);
                driver.addReply(digest, request.operation());
            }
        } catch (IOException unreadable) {
            digest.add(unreadable.toString());
        }
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
        execute(request);
        return driver.replied(steps.bytes, at, length);
    }

    private void execute(Steps.Request request) {
        int operation = request.operation();
        begun++;  // only this thread writes it
        if (operation >= WITHOUT_STATE) {
            driver.ask(operations.name(operation - WITHOUT_STATE), request.arguments(), request.bytes());
        } else {
            if (operations.mayReplaceFiles(operation))
                files.markReplaced();
            driver.execute(operations.name(operation), request.arguments(), request.bytes());
        }
    }

    /** Ends a case; returns 1 if it has reached code that no earlier case has reached. */
    private int finish() {
        driver.abandon();
        int found = 0;
        for (int i = 0; i < reached.length; i++) {
            if (!Arrays.equals(reached[i], known[i])) {
                System.arraycopy(reached[i], 0, known[i], 0, known[i].length);
                found = 1;
            }
        }
        return found;
    }
}
