package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

/** Executes the operations of the tiered machine on one release's own log and RemoteLogManager. */
public final class TieredDriver extends ReplyingDriver {
    private static final List<String> COMPARED =
        List.of(".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", ".deleted");

    private final LogEnvironment environment;
    private TieredAdapter adapter;
    private boolean open;

    public TieredDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        super(loader, kinds, buffer, operations);
        environment = new LogEnvironment(loader);
    }

    /** Finds the classes and members that the operations need; throws Missing if one does not exist. */
    public void prepare() throws Throwable {
        adapter();
    }

    /** Starts an example; the log will be in this directory, the remote storage next to it. */
    @Override
    public void begin(String directory) {
        super.begin(directory);
        if (adapter == null)
            return;
        try {
            adapter.forget();
        } catch (Throwable thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    @Override
    public void abandon() {
        if (open) {
            adapter.logs.abandon();
            adapter.stop();
        }
        open = false;
        environment.forgetTasks();
    }

    private TieredAdapter adapter() throws Throwable {
        if (adapter == null)
            adapter = new TieredAdapter(loader, environment);
        return adapter;
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

    /** arguments: log start, recovery point, clean, now. */
    private void open(Map<String, String> settings, long[] arguments) throws Throwable {
        settings.put("remote.storage.enable", "true");
        environment.setClock(arguments[3]);
        adapter().open(new File(directory), settings, arguments[0], arguments[1], arguments[2] != 0);
        open = true;
    }

    @Override
    public void execute(String operation, long[] arguments, byte[] bytes) {
        if (operation.equals("open_tiers"))
            abandon();
        Mappings.more();
        long a = arguments.length > 0 ? arguments[0] : 0;
        long b = arguments.length > 1 ? arguments[1] : 0;
        run(() -> {
            LogAdapter log = adapter().logs;
            switch (operation) {
                case "open_tiers" -> open(LogAdapter.settings(text(bytes)), arguments);
                case "append_as_leader" -> log.addResult(log.appendAsLeader(bytes, (int) a, b != 0), reply);
                case "append_as_follower" -> log.addResult(log.appendAsFollower(bytes, (int) a), reply);
                case "list_offsets" -> {
                    reply.add(arguments.length);
                    for (long target : arguments)
                        adapter.fetchOffset(target, reply);
                }
                case "roll_log" -> log.roll();
                case "truncate_log" -> reply.add(log.truncateTo(a) ? 1 : 0);
                case "truncate_fully" -> log.truncateFullyAndStartAt(a);
                case "delete_records" -> log.incrementStart(a);
                case "apply_retention" -> reply.add(log.deleteOldSegments());
                case "update_high_watermark" -> reply.add(log.updateHighWatermark(a));
                case "assign_epoch" -> log.assignEpoch((int) a, b);
                case "set_clock" -> environment.setClock(a);
                case "copy_segments" -> adapter.copy();
                case "expire_remote" -> adapter.expire();
                case "follow_remote" -> adapter.follow();
                case "fetch_remote" -> adapter.fetch(a, (int) b, arguments[2] != 0, arguments[3] != 0, reply);
                case "fail_storage" -> adapter.failStorage(a);
                case "renew_tasks" -> adapter.renew();
                case "close_log" -> {
                    log.close(a != 0);
                    adapter.stop();
                    open = false;
                }
                case "crash_log" -> abandon();
                default -> throw new UnsupportedOperationException("operation " + operation);
            }
        });
    }

    @Override
    boolean settle() throws Throwable {
        environment.runTasks();
        return open;
    }

    @Override
    void addState() throws Throwable {
        adapter.logs.state(reply);
        adapter.state(reply);
    }
}
