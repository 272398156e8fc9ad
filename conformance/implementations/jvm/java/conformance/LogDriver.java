package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Performs the operations of the log machine on one release's own log; one call from Python does one operation. */
public final class LogDriver implements Driver {
    private static final List<String> COMPARED =
        List.of(".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", ".cleaned",
            ".swap");

    private final ClassLoader loader;
    private final Operations operations;
    private final LogReply reply;
    private final Stage stage;
    private LogAdapter adapter;
    private final Running running = new Running();
    private String directory;
    private boolean open;

    public LogDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        this.loader = loader;
        this.operations = operations;
        reply = new LogReply(buffer, kinds);
        stage = new Stage(loader);
    }

    /** Which class it is that is driven. */
    public String className() throws Throwable {
        return adapter().parts.type.getName();
    }

    /** What it is doing right now. */
    public Running running() {
        return running;
    }

    /** Finds what the operations need; throws what is missing. */
    public void prepare() throws Throwable {
        adapter();
    }

    /** What a fetch from an offset reads first, up to the log's end; null if it is refused, and then text() says why. */
    public byte[] read(long offset) {
        reply.begin();
        try {
            return adapter.read(offset);
        } catch (Throwable thrown) {
            reply.refused(thrown);
            return null;
        }
    }

    /** The text of the last refusal, or null. */
    public String text() {
        return reply.text();
    }

    /** Starts an example; the log will be in this directory. */
    @Override
    public void begin(String directory) {
        abandon();
        if (adapter != null)
            adapter.forgetGuards();
        this.directory = directory;
    }

    /** Lets go of what is open, as a killed process does. */
    @Override
    public void abandon() {
        if (open)
            adapter.abandon();
        open = false;
        stage.forgetTasks();
    }

    private LogAdapter adapter() throws Throwable {
        if (adapter == null)
            adapter = new LogAdapter(loader, stage);
        return adapter;
    }

    @Override
    public File file(String path) {
        return path.isEmpty() ? new File(directory) : new File(directory, path);
    }

    @Override
    public boolean comparesAll() {
        return true;
    }

    @Override
    public boolean compares(String name) {
        for (String end : COMPARED)
            if (name.endsWith(end))
                return true;
        return false;
    }

    @Override
    public boolean replied(ByteBuffer expected, int at, int length) {
        return reply.is(expected, at, length);
    }

    @Override
    public Operations operations() {
        return operations;
    }

    /**
     * settings: names and values, with a zero byte between two.
     * arguments: log start offset, recovery point, clean, now.
     */
    private void open(String settings, long[] arguments) throws Throwable {
        Map<String, String> properties = new HashMap<>();
        String[] words = settings.split("\0", -1);
        for (int i = 0; i + 1 < words.length; i += 2)
            properties.put(words[i], words[i + 1]);
        stage.setClock(arguments[3]);
        LogAdapter log = adapter();
        log.open(new File(directory), properties, arguments[0], arguments[1], arguments[2] != 0);
        open = true;
    }

    @Override
    public void perform(String operation, long[] arguments, byte[] bytes) {
        if (operation.equals("open_log"))
            abandon();
        long a = arguments.length > 0 ? arguments[0] : 0;
        long b = arguments.length > 1 ? arguments[1] : 0;
        run(() -> {
            switch (operation) {
                case "open_log" -> open(new String(bytes, StandardCharsets.UTF_8), arguments);
                case "append_as_leader" -> adapter.appendAsLeader(bytes, (int) a, b != 0);
                case "verify_transaction" ->
                    reply.add(adapter.verify(a, (int) b, (short) arguments[2], arguments[3] != 0) ? 1 : 0);
                case "append_verified" ->
                    adapter.appendVerified(bytes, (int) a, (short) b, arguments[2] != 0, arguments[3]);
                case "append_as_follower" -> adapter.appendAsFollower(bytes, (int) a);
                case "list_offsets" -> {
                    for (long target : arguments)
                        adapter.fetchOffset(target, reply);
                }
                case "roll_log" -> adapter.roll();
                case "truncate_log" -> reply.add(adapter.truncateTo(a) ? 1 : 0);
                case "truncate_fully" -> adapter.truncateFullyAndStartAt(a);
                case "delete_records" -> adapter.incrementStart(a);
                case "apply_retention" -> reply.add(adapter.deleteOldSegments());
                case "update_high_watermark" -> reply.add(adapter.updateHighWatermark(a));
                case "close_log" -> {
                    adapter.close(a != 0);
                    open = false;
                }
                case "crash_log" -> abandon();
                case "set_clock" -> stage.setClock(a);
                case "clean_log" -> {
                    for (long number : adapter.clean(new File(directory), arguments))
                        reply.add(number);
                }
                case "crash_cleaning" -> crashCleaning(arguments);
                case "assign_epoch" -> adapter.assignEpoch((int) a, b);
                case "offset_snapshot" -> adapter.offsetSnapshot(reply);
                case "expire_producers" -> adapter.expireProducers(stage.now());
                default -> throw new UnsupportedOperationException("operation " + operation);
            }
        });
    }

    /** A round of cleaning that ends at some place, or behind its end, together with the process. */
    private void crashCleaning(long[] arguments) {
        try {
            adapter.clean(new File(directory), arguments);
        } catch (Throwable ignored) {
            // that it was killed, or a refusal that its thread would only have logged
        } finally {
            abandon();
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
        try {
            stage.runTasks();
            if (open) {
                int mark = reply.mark();
                adapter.state(reply);
                reply.endState(mark);
            }
        } catch (Throwable thrown) {
            reply.refused(thrown);
        }
    }
}
