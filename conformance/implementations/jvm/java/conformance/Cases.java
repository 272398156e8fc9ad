package conformance;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Many short cases, each from an empty start, executed in one call from Python. A case ends at its first step with
 * another result than expected; the next case begins whatever has happened in the previous one.
 *
 * <p>All values are native longs; bytes are padded with zeros to whole longs.
 *
 * <pre>
 *   case: number of following longs, steps
 *   step: operation, number of arguments, arguments, number of bytes, bytes, bytes of the reply, reply
 * </pre>
 *
 * It has the layout of {@code conformance/implementations/jvm/cases.py}.
 */
public final class Cases {
    /** Gives the file that the bytes name the reply as its content, or removes it: NO_FILE. */
    private static final int WRITE = 300;
    /** Compares a file with a content, or AS_WRITTEN for the content that was written last. */
    private static final int COMPARE = 301;
    /** Added to the number of an operation that changes nothing: its reply has no state. */
    private static final int ASKED = 1000;
    private static final int NO_FILE = -1;
    private static final int AS_WRITTEN = -2;

    private final Driver driver;
    private final Operations operations;
    private final String directory;
    private final Map<String, WatchedFile> watched = new HashMap<>();
    private boolean[][] reached = {};
    private boolean[][] known = {};
    private volatile int executing;
    private volatile int begun;
    private ByteBuffer content = ByteBuffer.allocateDirect(1 << 17);
    private ByteBuffer script;
    private int at;
    private int writtenAt;
    private int writtenLength;

    /** directory: the directory of all cases, as for the driver's begin; their files are overwritten. */
    public Cases(Driver driver, String directory) {
        this.driver = driver;
        operations = driver.operations();
        this.directory = directory;
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
        script = scripts.order(ByteOrder.nativeOrder());
        int[] answers = new int[2 * cases];
        int next = 0;
        for (int number = 0; number < cases; number++) {
            at = next;
            int end = at + Long.BYTES + Long.BYTES * (int) script.getLong(at);
            at += Long.BYTES;
            executing = number;
            begun = 0;
            driver.begin(directory);
            answers[2 * number] = firstDifference(end);
            driver.abandon();
            answers[2 * number + 1] = isNew() ? 1 : 0;
            next = end;
        }
        return answers;
    }

    private int firstDifference(int end) {
        for (int step = 0; at < end; step++) {
            int operation = (int) nextLong();
            long[] arguments = new long[(int) nextLong()];
            for (int i = 0; i < arguments.length; i++)
                arguments[i] = nextLong();
            byte[] bytes = nextBytes();
            int length = (int) nextLong();
            int reply = at;
            at += padded(Math.max(length, 0));
            if (!isAsExpected(operation, arguments, bytes, reply, length))
                return step;
        }
        return -1;
    }

    private boolean isAsExpected(int operation, long[] arguments, byte[] bytes, int reply, int length) {
        try {
            if (operation == WRITE) {
                write(driver.file(text(bytes)), reply, length);
                return true;
            }
            if (operation == COMPARE)
                return length == AS_WRITTEN ? holds(bytes, writtenAt, writtenLength) : holds(bytes, reply, length);
        } catch (IOException unreadable) {
            return false;
        }
        begun++;  // only this thread writes it
        if (operation >= ASKED) {
            driver.ask(operations.name(operation - ASKED), arguments, bytes);
            return driver.replied(script, reply, length);
        }
        if (operations.mayReplaceFiles(operation))
            doubt();
        driver.execute(operations.name(operation), arguments, bytes);
        return driver.replied(script, reply, length);
    }

    private static String text(byte[] name) {
        return new String(name, StandardCharsets.ISO_8859_1);
    }

    /** The file is reused: creating a new one takes longer than all operations on it. */
    private void write(File file, int from, int length) throws IOException {
        if (length == NO_FILE) {
            if (file.delete())
                doubt();
            return;
        }
        try (RandomAccessFile open = new RandomAccessFile(file, "rw")) {
            FileChannel channel = open.getChannel();
            channel.truncate(length);
            if (length > 0)
                channel.write(script.slice(from, length), 0);
        }
        writtenAt = from;
        writtenLength = length;
    }

    private boolean holds(byte[] name, int from, int length) throws IOException {
        String path = text(name);
        if (length == NO_FILE)
            return !driver.file(path).exists();
        if (content.capacity() <= length)
            content = ByteBuffer.allocateDirect(2 * length);
        WatchedFile file = watched.get(path);
        if (file == null)
            watched.put(path, file = new WatchedFile(driver.file(path)));
        return file.holds(script, from, length, content);
    }

    private void doubt() {
        for (WatchedFile file : watched.values())
            file.doubt();
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

    private byte[] nextBytes() {
        byte[] bytes = new byte[(int) nextLong()];
        script.get(at, bytes);
        at += padded(bytes.length);
        return bytes;
    }

    private static int padded(int length) {
        return (length + 7) & -8;
    }

    private long nextLong() {
        long value = script.getLong(at);
        at += Long.BYTES;
        return value;
    }
}
