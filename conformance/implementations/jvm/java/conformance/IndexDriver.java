package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Performs the operations of the harness on one release's own index classes. One call from Python does one operation
 * and leaves its outcome and the state after it in the shared reply, so a step costs a single crossing.
 */
public final class IndexDriver implements AskedDriver {
    private final ClassLoader loader;
    private final Operations operations;
    private final Reply reply;
    private final IndexAdapter[] adapters = new IndexAdapter[3];
    private final Running running = new Running();
    private IndexAdapter current;
    private boolean tellsState = true;
    private String directory = "";

    public IndexDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        this.loader = loader;
        this.operations = operations;
        this.reply = new Reply(buffer, kinds);
    }

    /** Works in a directory, whose name ends with a slash, from now on. */
    @Override
    public void begin(String directory) {
        abandon();
        this.directory = directory;
        reply.inside(directory);
    }

    /** Lets go of what is open, as a killed process does. */
    @Override
    public void abandon() {
        if (current != null)
            current.abandon();
        current = null;
    }

    /** What it is doing right now. */
    public Running running() {
        return running;
    }

    /** kind: 0 offset, 1 time, 2 transaction. */
    private void open(int kind, String path, long baseOffset, int maxIndexSize, boolean writable) {
        abandon();
        run(() -> {
            IndexAdapter adapter = adapter(kind);
            adapter.open(file(path), baseOffset, maxIndexSize, writable);
            current = adapter;
        });
    }

    @Override
    public void perform(String operation, long[] arguments, byte[] bytes) {
        switch (operation) {
            case "open" -> open((int) arguments[0], text(bytes), arguments[1], (int) arguments[2], arguments[3] != 0);
            case "rename" -> run(() -> current.rename(file(text(bytes))));
            case "crash" -> run(this::abandon);
            default -> run(() -> current.perform(operation, arguments, reply));
        }
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

    @Override
    public Operations operations() {
        return operations;
    }

    @Override
    public File file(String path) {
        return new File(directory + path);
    }

    @Override
    public boolean replied(ByteBuffer expected, int at, int length) {
        return reply.is(expected, at, length);
    }

    private IndexAdapter adapter(int kind) throws Throwable {
        if (adapters[kind] == null)
            adapters[kind] = switch (kind) {
                case 0 -> new OffsetIndexAdapter(loader);
                case 1 -> new TimeIndexAdapter(loader);
                default -> new TransactionIndexAdapter(loader);
            };
        return adapters[kind];
    }

    /** Finds what the operations of a kind of index need; throws what is missing. */
    public void prepare(int kind) throws Throwable {
        adapter(kind);
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
        } catch (Throwable thrown) {
            reply.refused(thrown);
        }
        if (current != null && tellsState) {
            try {
                current.state(reply);
            } catch (Throwable thrown) {
                reply.refused(thrown);
            }
        }
        reply.end();
    }
}
