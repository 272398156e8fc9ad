package conformance;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * One release that performs the steps of scripts, and stops behind the first that comes out otherwise. Its reply and its
 * files then stay as that step has left them, for the harness to look at.
 */
final class Follower {
    // The harness's own steps, and those of IndexDriver that have a text. The others are IndexAdapter's.
    private static final int OPEN = 100;
    private static final int RENAME = 101;
    private static final int OVERWRITE = 102;
    private static final int LIST = 103;

    private static final int NOWHERE = -1;

    private final IndexDriver driver;
    private final int rules;
    private final WatchedFile file = new WatchedFile();
    private Script script;
    private volatile int step;
    private int steps;
    private boolean stopped;
    private Throwable failure;

    /** rules: the number of the set of rules it is held to. */
    Follower(IndexDriver driver, int rules) {
        this.driver = driver;
        this.rules = rules;
    }

    /** Starts an example in an empty directory. */
    void begin() {
        stopped = false;
        file.watch(null);
        try {
            file.release();
        } catch (IOException ignored) {
            // it was only read
        }
    }

    /** What it will follow, from its first step on. */
    void take(Script script, int steps) {
        this.script = script;
        this.steps = steps;
        step = 0;
        file.doubt();
    }

    /** Performs what is left of the script. */
    void follow() {
        try {
            while (!stopped && step < steps) {
                script.next();
                stopped = !isAsExpected();
                step++;
            }
        } catch (Throwable thrown) {
            failure = thrown;
        }
    }

    /** Whether it has stopped in the script. Throws what has kept it from performing the script at all, which is a bug. */
    boolean hasStopped() {
        if (failure != null)
            throw new IllegalStateException("step " + step + " of a script cannot be performed", failure);
        return stoppedAt() != NOWHERE;
    }

    /** The step behind which it has stopped, or -1. */
    int stoppedAt() {
        return stopped ? step - 1 : NOWHERE;
    }

    /** The step that it performs right now, or would perform next. */
    int at() {
        return step;
    }

    /** Goes on after the step that has stopped it: the harness has accepted its observation. */
    void resume() {
        stopped = false;
        follow();
        hasStopped();
    }

    private boolean isAsExpected() {
        try {
            return switch (script.operation) {
                case OVERWRITE -> {
                    file.overwrite(script.bytes, script.fileAt[rules], script.fileLength[rules]);
                    yield true;
                }
                case LIST -> isListed();
                default -> performed();
            };
        } catch (IOException unreadable) {
            return false;
        }
    }

    private boolean performed() throws IOException {
        long[] arguments = script.arguments;
        switch (script.operation) {
            case OPEN -> {
                file.watch(driver.file(script.text));
                driver.open((int) arguments[0], script.text, arguments[1], (int) arguments[2], arguments[3] != 0);
            }
            case RENAME -> {
                file.watch(driver.file(script.text));
                driver.rename(script.text);
            }
            default -> {
                if (script.operation == IndexAdapter.DELETE)
                    file.doubt();
                driver.perform(
                    script.operation, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
            }
        }
        return driver.replied(script.bytes, script.replyAt[rules], script.replyLength[rules])
            && file.holds(script.bytes, script.fileAt[rules], script.fileLength[rules]);
    }

    private boolean isListed() {
        String[] names = driver.file("").list();
        Arrays.sort(names);
        byte[] seen = String.join("\0", names).getBytes(StandardCharsets.UTF_8);
        int at = script.fileAt[rules];
        return Arrays.equals(seen, 0, seen.length, script.bytes.array(), at, at + script.fileLength[rules]);
    }
}
