package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Performs the operations of the log machine on one release's own log; one call from Python does one operation. */
public final class LogDriver implements Driver {
    // The order of conformance/implementations/jvm/log.py.
    private static final int ROLL = 0;
    private static final int TRUNCATE_TO = 1;
    private static final int TRUNCATE_FULLY = 2;
    private static final int DELETE_RECORDS = 3;
    private static final int RETAIN = 4;
    private static final int UPDATE_HIGH_WATERMARK = 5;
    private static final int CLOSE = 6;
    private static final int CRASH = 7;
    private static final int SET_CLOCK = 8;
    private static final int ASSIGN_EPOCH = 9;
    private static final int EXPIRE_PRODUCERS = 10;
    private static final int APPEND_AS_LEADER = 11;
    private static final int APPEND_AS_FOLLOWER = 12;
    private static final int LIST_OFFSETS = 13;
    private static final int OPEN = 14;
    private static final int OFFSET_SNAPSHOT = 15;
    private static final int CLEAN = 16;
    private static final int CRASH_CLEANING = 17;
    private static final int VERIFY_TRANSACTION = 18;
    private static final int APPEND_VERIFIED = 19;

    private static final List<String> COMPARED =
        List.of(".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", ".cleaned",
            ".swap");

    private final ClassLoader loader;
    private final LogReply reply;
    private final Stage stage;
    private LogAdapter adapter;
    private final Running running = new Running();
    private String directory;
    private boolean open;

    public LogDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer) {
        this.loader = loader;
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
    public boolean mayReplaceFiles(int operation) {
        return operation != LIST_OFFSETS && operation != SET_CLOCK && operation != UPDATE_HIGH_WATERMARK
            && operation != VERIFY_TRANSACTION;
    }

    /**
     * settings: names and values, each behind a zero byte.
     * arguments: segment bytes, log start offset, recovery point, clean, now, expiration of producers, verification.
     */
    private void open(String settings, long[] arguments) throws Throwable {
        Map<String, String> properties = new HashMap<>();
        String[] words = settings.split("\0", -1);
        for (int i = 1; i + 1 < words.length; i += 2)
            properties.put(words[i], words[i + 1]);
        stage.setClock(arguments[4]);
        LogAdapter log = adapter();
        log.open(new File(directory), properties, (int) arguments[0], arguments[1], arguments[2], arguments[3] != 0,
            (int) arguments[5], arguments[6] != 0);
        open = true;
    }

    @Override
    public void perform(int operation, long[] arguments, byte[] bytes) {
        if (operation == OPEN)
            abandon();
        long a = arguments.length > 0 ? arguments[0] : 0;
        long b = arguments.length > 1 ? arguments[1] : 0;
        run(() -> {
            switch (operation) {
                case OPEN -> open(new String(bytes, StandardCharsets.UTF_8), arguments);
                case APPEND_AS_LEADER -> adapter.appendAsLeader(bytes, (int) a, b != 0);
                case VERIFY_TRANSACTION ->
                    reply.add(adapter.verify(a, (int) b, (short) arguments[2], arguments[3] != 0) ? 1 : 0);
                case APPEND_VERIFIED ->
                    adapter.appendVerified(bytes, (int) a, b != 0, arguments[2], (short) arguments[3]);
                case APPEND_AS_FOLLOWER -> adapter.appendAsFollower(bytes, (int) a);
                case LIST_OFFSETS -> {
                    for (long target : arguments)
                        adapter.fetchOffset(target, reply);
                }
                case ROLL -> adapter.roll();
                case TRUNCATE_TO -> reply.add(adapter.truncateTo(a) ? 1 : 0);
                case TRUNCATE_FULLY -> adapter.truncateFullyAndStartAt(a);
                case DELETE_RECORDS -> adapter.incrementStart(a);
                case RETAIN -> reply.add(adapter.deleteOldSegments());
                case UPDATE_HIGH_WATERMARK -> reply.add(adapter.updateHighWatermark(a));
                case CLOSE -> {
                    adapter.close(a != 0);
                    open = false;
                }
                case CRASH -> abandon();
                case SET_CLOCK -> stage.setClock(a);
                case CLEAN -> {
                    for (long number : adapter.clean(new File(directory), arguments))
                        reply.add(number);
                }
                case CRASH_CLEANING -> crashCleaning(arguments);
                case ASSIGN_EPOCH -> adapter.assignEpoch((int) a, b);
                case OFFSET_SNAPSHOT -> adapter.offsetSnapshot(reply);
                case EXPIRE_PRODUCERS -> adapter.expireProducers(stage.now());
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
