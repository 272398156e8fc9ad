package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Performs the operations of the segment machine on one release's own LogSegment; one call is one operation. */
public final class SegmentDriver {
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

    // Releases before KAFKA-19390 leave every remapped buffer to the collector; the kernel allows 65,530 maps a process.
    private static final int MAPPING_STEPS_BETWEEN_COLLECTIONS = 2048;
    private static int mappingSteps;

    private final ClassLoader loader;
    private final LogReply reply;
    private final Stage stage;
    private SegmentAdapter adapter;
    private final Running running = new Running();
    private String directory;

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
    public void begin(String directory) {
        abandon();
        this.directory = directory;
    }

    /** Lets go of what is open, as a killed process does. */
    public void abandon() {
        if (adapter != null)
            adapter.abandon();
    }

    private SegmentAdapter adapter() throws Throwable {
        if (adapter == null)
            adapter = new SegmentAdapter(loader, stage);
        return adapter;
    }

    private static synchronized void mapping() {
        if (++mappingSteps % MAPPING_STEPS_BETWEEN_COLLECTIONS == 0)
            System.gc();
    }

    public void open(long baseOffset, int indexInterval, int indexSize, long jitterMs, boolean exists, int initFileSize,
                     boolean preallocate, String suffix, long nowMs) {
        abandon();
        mapping();
        run(() -> {
            stage.setClock(nowMs);
            adapter().open(new File(directory), baseOffset, indexInterval, indexSize, jitterMs, exists, initFileSize,
                preallocate, suffix);
        });
    }

    public void append(byte[] records, long largestOffset, long largestTimestamp, long shallowOffset) {
        run(() -> adapter.append(records, largestOffset, largestTimestamp, shallowOffset));
    }

    /** Appends from a file that holds the records, beside the directory and never in it. */
    public void appendFromFile(byte[] records, int position) {
        run(() -> {
            Path source = Path.of(directory + ".source");
            Files.write(source, records);
            try {
                reply.add(adapter.appendFromFile(source.toFile(), position));
            } finally {
                Files.delete(source);
            }
        });
    }

    public void shouldRoll(long maxMs, int maxBytes, long timestamp, long offset, int size, long nowMs) {
        run(() -> reply.add(adapter.shouldRoll(maxMs, maxBytes, timestamp, offset, size, nowMs) ? 1 : 0));
    }

    public void updateTxnIndex(long producerId, long first, long last, boolean aborted, long stable) {
        run(() -> adapter.updateTxnIndex(producerId, first, last, aborted, stable));
    }

    public void rename(String oldSuffix, String newSuffix) {
        run(() -> adapter.rename(oldSuffix, newSuffix));
    }

    public void perform(int operation, long a, long b, long c, long d) {
        if (operation == RECOVER || operation == TRUNCATE_TO || operation == RESIZE)
            mapping();
        if (operation == TRUNCATE_TO)
            stage.setClock(b);
        run(() -> {
            if (operation == CRASH)
                abandon();
            else
                adapter.perform(operation, a, b, c, d, reply);
        });
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
        if (adapter == null || !adapter.isOpen())
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
