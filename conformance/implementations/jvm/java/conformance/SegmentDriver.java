package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/** Performs the operations of the segment machine on one release's own LogSegment; one call is one operation. */
public final class SegmentDriver implements AskedDriver {
    // The order of conformance/implementations/jvm/segment.py.
    static final int CRASH = 0;
    static final int INACTIVE = 1;
    static final int CLOSE = 2;
    static final int RECOVER = 3;
    static final int TRUNCATE_TO = 4;
    static final int TRANSLATE = 5;
    static final int READ = 6;
    static final int NEXT_OFFSET = 7;
    static final int FIND = 8;
    static final int LARGEST_TIMESTAMP = 9;
    static final int HAS_OVERFLOW = 10;
    static final int FLUSH = 11;
    static final int DELETE = 12;
    static final int SANITY_CHECK = 13;
    static final int RESIZE = 14;
    static final int COLLECT = 15;
    static final int UPPER_BOUND = 16;
    static final int FIRST_TIMESTAMP = 17;
    static final int CLOSE_HANDLERS = 18;
    private static final int APPEND = 19;
    private static final int APPEND_FROM_FILE = 20;
    private static final int SHOULD_ROLL = 21;
    private static final int UPDATE_TXN_INDEX = 22;
    private static final int RENAME = 23;
    private static final int OPEN = 24;
    private static final int LOSE_DIRECTORY = 25;

    private final ClassLoader loader;
    private final LogReply reply;
    private final Stage stage;
    private SegmentAdapter adapter;
    private final Running running = new Running();
    private String directory;
    private boolean tellsState = true;

    public SegmentDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer) {
        this.loader = loader;
        reply = new LogReply(buffer, kinds);
        stage = new Stage(loader);
    }

    /** What it is doing right now. */
    public Running running() {
        return running;
    }

    /** Finds what the operations need; throws what is missing. */
    public void prepare() throws Throwable {
        adapter();
    }

    /** The text of the last refusal, or null. */
    public String text() {
        return reply.text();
    }

    /** Starts an example in an empty directory. */
    @Override
    public void begin(String directory) {
        abandon();
        this.directory = directory;
        reply.inside(directory);
    }

    /** Lets go of what is open, as a killed process does. */
    @Override
    public void abandon() {
        if (adapter != null)
            adapter.abandon();
    }

    private SegmentAdapter adapter() throws Throwable {
        if (adapter == null)
            adapter = new SegmentAdapter(loader, stage);
        return adapter;
    }

    @Override
    public File file(String path) {
        return path.isEmpty() ? new File(directory) : new File(directory, path);
    }

    @Override
    public boolean replied(ByteBuffer expected, int at, int length) {
        return reply.is(expected, at, length);
    }

    @Override
    public boolean mayReplaceFiles(int operation) {
        return switch (operation) {
            case TRANSLATE, READ, NEXT_OFFSET, FIND, HAS_OVERFLOW, COLLECT, UPPER_BOUND, FIRST_TIMESTAMP -> false;
            default -> true;
        };
    }

    @Override
    public void perform(int operation, long[] arguments, byte[] bytes) {
        if (operation == OPEN)
            abandon();
        if (operation == OPEN || operation == RECOVER || operation == TRUNCATE_TO || operation == RESIZE)
            Mappings.more();
        if (operation == TRUNCATE_TO)
            stage.setClock(arguments[1]);
        run(() -> {
            switch (operation) {
                case CRASH -> abandon();
                case OPEN -> open(arguments, text(bytes));
                case APPEND -> adapter.append(bytes, arguments[0], arguments[1], arguments[2]);
                case APPEND_FROM_FILE -> appendFromFile(bytes, (int) arguments[0]);
                case SHOULD_ROLL -> reply.add(adapter.shouldRoll(arguments[0], (int) arguments[1], arguments[2],
                    arguments[3], (int) arguments[4], arguments[5]) ? 1 : 0);
                case UPDATE_TXN_INDEX -> adapter.updateTxnIndex(arguments[0], arguments[1], arguments[2],
                    arguments[3] != 0, arguments[4]);
                case RENAME -> {
                    String[] suffixes = text(bytes).split("\0", -1);
                    adapter.rename(suffixes[0], suffixes[1]);
                }
                case LOSE_DIRECTORY -> adapter.updateDirectory(new File(directory, "missing"));
                default -> {
                    long[] all = Arrays.copyOf(arguments, 4);
                    adapter.perform(operation, all[0], all[1], all[2], all[3], reply);
                }
            }
        });
    }

    @Override
    public void ask(int operation, long[] arguments, byte[] bytes) {
        tellsState = false;
        perform(operation, arguments, bytes);
        tellsState = true;
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** arguments: base offset, index interval, index size, jitter, exists, initial size, preallocate, now. */
    private void open(long[] arguments, String suffix) throws Throwable {
        stage.setClock(arguments[7]);
        adapter().open(new File(directory), arguments[0], (int) arguments[1], (int) arguments[2], arguments[3],
            arguments[4] != 0, (int) arguments[5], arguments[6] != 0, suffix);
    }

    /** Appends from a file that holds the records, beside the directory and never in it. */
    private void appendFromFile(byte[] records, int position) throws Throwable {
        Path source = Path.of(directory + ".source");
        Files.write(source, records);
        try {
            reply.add(adapter.appendFromFile(source.toFile(), position));
        } finally {
            Files.delete(source);
        }
    }

    private interface Step {
        void run() throws Throwable;
    }

    private void run(Step step) {
        running.begin();
        try {
            perform(step);
        } finally {
            running.end();
        }
    }

    private void perform(Step step) {
        reply.begin();
        try {
            step.run();
            reply.endValue();
        } catch (Throwable thrown) {
            reply.refused(thrown);
        }
        if (adapter == null || !adapter.isOpen() || !tellsState)
            return;
        try {
            int mark = reply.mark();
            adapter.state(reply);
            reply.endState(mark);
        } catch (Throwable thrown) {
            reply.refused(thrown);
        }
    }
}
