package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.Map;

/** Performs the operations of the log machine on one release's own log; one call from Python does one operation. */
public final class LogDriver {
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
    public void begin(String directory) {
        abandon();
        this.directory = directory;
    }

    /** Lets go of what is open, as a killed process does. */
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

    public void open(Map<String, String> settings, int segmentBytes, long start, long recoveryPoint, boolean clean,
                     long nowMs, int expirationMs) {
        abandon();
        run(() -> {
            stage.setClock(nowMs);
            LogAdapter log = adapter();
            log.open(new File(directory), settings, segmentBytes, start, recoveryPoint, clean, expirationMs);
            open = true;
        });
    }

    public void appendAsLeader(byte[] records, int epoch, boolean fromClient) {
        run(() -> adapter.appendAsLeader(records, epoch, fromClient));
    }

    public void appendAsFollower(byte[] records, int epoch) {
        run(() -> adapter.appendAsFollower(records, epoch));
    }

    public void fetchOffsets(long[] targets) {
        run(() -> {
            for (long target : targets)
                adapter.fetchOffset(target, reply);
        });
    }

    public void perform(int operation, long a, long b) {
        run(() -> {
            switch (operation) {
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
                case ASSIGN_EPOCH -> adapter.assignEpoch((int) a, b);
                case EXPIRE_PRODUCERS -> adapter.expireProducers(stage.now());
                default -> throw new UnsupportedOperationException("operation " + operation);
            }
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
