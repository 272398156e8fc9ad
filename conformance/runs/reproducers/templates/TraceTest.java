package @package@;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * @title@: Kafka @release@, @count@ steps.
 *
 * Each step calls one method of Kafka's own class, whose signatures the classes below look up, so that the test runs
 * with every release. After each step, its result, the state in memory and the bytes of all files are compared.
 */
public class @name@ {
    private static final byte[] NONE = {};

    @TempDir
    File parent;

    private ReplyingDriver driver;
    private final Map<String, byte[]> files = new TreeMap<>();
    /**
     * @state@
     */
    private List<Long> state;

    @BeforeEach
    public void setUp() {
        File dir = new File(parent, "t-0");
        assertTrue(dir.mkdir());
        driver = new @driver@(getClass().getClassLoader(), Map.of(), null, null);
        driver.begin(dir.getPath());
    }

    @AfterEach
    public void tearDown() {
        driver.abandon();
    }

@steps@

    private static byte[] bytes(String used, int zeros) {
        byte[] bytes = HexFormat.of().parseHex(used);
        return Arrays.copyOf(bytes, bytes.length + zeros);
    }

    private static byte[] texts(String... texts) {
        return String.join("\0", texts).getBytes(StandardCharsets.UTF_8);
    }

    private void execute(String operation, byte[] bytes, long... arguments) {
        driver.execute(operation, arguments, bytes);
    }

    /** Expects a result: its numbers, none of them for null. */
    private void returned(Long... values) {
        assertEquals(null, driver.reply.kind(), () -> "threw " + driver.reply.thrown);
        assertEquals(List.of(values), driver.reply.values);
    }

    /** Expects an exception of a kind, and its message without directories; null for any message. */
    private void threw(String kind, String message) {
        assertEquals(kind, driver.reply.kind(), () -> "threw " + driver.reply.thrown);
        if (message != null)
            assertEquals(message, driver.reply.comparable(driver.directory));
    }

    /** Sets the state that is expected from this step on; the numbers are explained at the field. */
    private void state(Long... values) {
        state = List.of(values);
    }

    private void noState() {
        state = null;
    }

    /** Sets the content of a file that is expected from this step on. */
    private void file(String name, byte[] content) {
        files.put(name, content);
    }

    private void noFile(String name) {
        files.put(name, null);
    }

    /** Corrupts a file. */
    private void write(String name, byte[] content) throws Exception {
        files.put(name, content);
        driver.file("").mkdirs();
        try (RandomAccessFile file = new RandomAccessFile(driver.file(name), "rw")) {
            file.write(content);
            file.setLength(content.length);
        }
    }

    private void remove(String name) throws Exception {
        files.put(name, null);
        Files.deleteIfExists(driver.file(name).toPath());
    }

    /** Compares state and files with what is expected after the step. */
    private void check() throws Exception {
        assertEquals(state, driver.reply.state);
        TreeSet<String> names = new TreeSet<>();
        for (Map.Entry<String, byte[]> each : files.entrySet()) {
            if (each.getValue() != null)
                names.add(each.getKey());
            File file = driver.file(each.getKey());
            assertEquals(each.getValue() != null, file.exists(), () -> "there is a file " + each.getKey());
            if (each.getValue() != null)
                assertArrayEquals(each.getValue(), Files.readAllBytes(file.toPath()), each.getKey());
        }
        String[] found = driver.file("").list();
        if (driver.comparesAll())
            assertEquals(names, new TreeSet<>(Arrays.stream(found == null ? new String[0] : found)
                .filter(driver::compares).toList()));
    }

    /** Result of a step, or its exception; and the state after it, or null if nothing is open. */
    private static final class Reply {
        private static final Pattern MODIFIED = Pattern.compile("lastModifiedTime=(\\d+)");
        /** Part of a message by which two errors of one class are told apart. */
        private static final String VERSION = "aborted transaction version";
        /** Kinds of exceptions; a class includes its subclasses. */
        private static final Map<String, String> KINDS = new HashMap<>();

        static {
@kinds@
        }

        private final List<Long> added = new ArrayList<>();
        private List<Long> values = List.of();
        private List<Long> state;
        private Throwable thrown;

        void begin() {
            added.clear();
            values = List.of();
            state = null;
            thrown = null;
        }

        void inside(String directory) {
        }

        void add(long value) {
            added.add(value);
        }

        int mark() {
            return added.size();
        }

        void replace(int mark, long value) {
            added.set(mark, value);
        }

        void failed(Throwable exception) {
            thrown = exception;
        }

        /** Returns the numbers added since the last call. */
        private List<Long> taken() {
            List<Long> taken = List.copyOf(added);
            added.clear();
            return taken;
        }

        String kind() {
            if (thrown == null)
                return null;
            boolean version = thrown.getMessage() != null && thrown.getMessage().contains(VERSION);
            for (Class<?> type = thrown.getClass(); type != null; type = type.getSuperclass()) {
                String kind = KINDS.get(type.getName() + (version ? "" : " without a version"));
                if (kind == null)
                    kind = KINDS.get(type.getName());
                if (kind != null)
                    return kind;
            }
            return thrown.toString();
        }

        /** Returns the message without directories and times of modification. */
        String comparable(String directory) {
            String text = String.valueOf(thrown.getMessage());
            Matcher found = MODIFIED.matcher(text);
            String same = found.find() ? text.replace(found.group(1), "MODIFIED") : text;
            return same.replace(directory + "/remote-log-index-cache/", "").replace(directory + "/", "")
                .replace(directory + ".source", "SOURCE");
        }
    }

    /** Executor of a step, which keeps its result. */
    private abstract static class ReplyingDriver {
        final ClassLoader loader;
        final Reply reply = new Reply();
        String directory = "";

        ReplyingDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
            this.loader = loader;
        }

        interface Step {
            void run() throws Throwable;
        }

        public void begin(String directory) {
            this.directory = directory;
        }

        public File file(String path) {
            return path.isEmpty() ? new File(directory) : new File(directory, path);
        }

        /** True if extra files fail the test. */
        public boolean comparesAll() {
            return false;
        }

        /** True if a file is compared. */
        public boolean compares(String name) {
            return true;
        }

        public abstract void abandon();

        public abstract void execute(String operation, long[] arguments, byte[] bytes);

        /** Waits for the effects of the step; false if nothing is open. */
        abstract boolean settle() throws Throwable;

        abstract void addState() throws Throwable;

        final void run(Step step) {
            reply.begin();
            try {
                step.run();
                reply.values = reply.taken();
            } catch (Throwable exception) {
                reply.failed(exception);
                reply.taken();
            }
            try {
                if (settle()) {
                    addState();
                    reply.state = reply.taken();
                }
            } catch (Throwable exception) {
                reply.failed(exception);
            }
        }

        static String text(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    private static final class Operations {
    }

@classes@
}
