package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/** Executes the operations of the segment machine on one release's own LogSegment, one per call. */
public final class SegmentDriver extends ReplyingDriver {
    private final LogEnvironment environment;
    private SegmentAdapter adapter;

    public SegmentDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        super(loader, kinds, buffer, operations);
        environment = new LogEnvironment(loader);
    }

    /** Finds the classes and members that the operations need; throws Missing if one does not exist. */
    public void prepare() throws Throwable {
        adapter();
    }

    /** Releases everything that is open, as a killed process does. */
    @Override
    public void abandon() {
        if (adapter != null)
            adapter.abandon();
    }

    private SegmentAdapter adapter() throws Throwable {
        if (adapter == null)
            adapter = new SegmentAdapter(loader, environment);
        return adapter;
    }

    @Override
    public void execute(String operation, long[] arguments, byte[] bytes) {
        switch (operation) {
            case "open_segment" -> {
                abandon();
                Mappings.more();
            }
            case "truncate_segment" -> {
                Mappings.more();
                environment.setClock(arguments[1]);
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
                    adapter.execute(operation, all[0], all[1], all[2], all[3], reply);
                }
            }
        });
    }

    /** arguments: base offset, index interval, index size, jitter, exists, initial size, preallocate, now. */
    private void open(long[] arguments, String suffix) throws Throwable {
        environment.setClock(arguments[7]);
        adapter().open(new File(directory), arguments[0], (int) arguments[1], (int) arguments[2], arguments[3],
            arguments[4] != 0, (int) arguments[5], arguments[6] != 0, suffix);
    }

    /** Appends from a file with the records, which is outside the compared directory. */
    private void appendFromFile(byte[] records, int position) throws Throwable {
        Path source = Path.of(directory + ".source");
        Files.write(source, records);
        try {
            reply.add(adapter.appendFromFile(source.toFile(), position));
        } finally {
            Files.delete(source);
        }
    }

    @Override
    boolean settle() {
        return adapter != null && adapter.isOpen();
    }

    @Override
    void addState() throws Throwable {
        adapter.state(reply);
    }
}
