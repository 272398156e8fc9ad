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
    private final ClassLoader loader;
    private final Operations operations;
    private final LogReply reply;
    private final Stage stage;
    private SegmentAdapter adapter;
    private final Running running = new Running();
    private String directory;
    private boolean tellsState = true;

    public SegmentDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        this.loader = loader;
        this.operations = operations;
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
    public Operations operations() {
        return operations;
    }

    @Override
    public void perform(String operation, long[] arguments, byte[] bytes) {
        switch (operation) {
            case "open_segment" -> {
                abandon();
                Mappings.more();
            }
            case "truncate_segment" -> {
                Mappings.more();
                stage.setClock(arguments[1]);
            }
            case "recover_segment", "resize_indexes" -> Mappings.more();
            default -> { }
        }
        run(() -> {
            switch (operation) {
                case "crash_segment" -> abandon();
                case "open_segment" -> open(arguments, text(bytes));
                case "append_records" -> adapter.append(bytes, arguments[0], arguments[1], arguments[2]);
                case "append_from_file" -> appendFromFile(bytes, (int) arguments[0]);
                case "should_roll" -> reply.add(adapter.shouldRoll(arguments[0], (int) arguments[1], arguments[2],
                    arguments[3], (int) arguments[4], arguments[5]) ? 1 : 0);
                case "update_txn_index" -> adapter.updateTxnIndex(arguments[0], arguments[1], arguments[2],
                    arguments[3] != 0, arguments[4]);
                case "rename_segment" -> {
                    String[] suffixes = text(bytes).split("\0", -1);
                    adapter.rename(suffixes[0], suffixes[1]);
                }
                case "lose_directory" -> adapter.updateDirectory(new File(directory, "missing"));
                default -> {
                    long[] all = Arrays.copyOf(arguments, 4);
                    adapter.perform(operation, all[0], all[1], all[2], all[3], reply);
                }
            }
        });
    }

    @Override
    public void ask(String operation, long[] arguments, byte[] bytes) {
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
