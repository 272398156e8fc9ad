package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;

/** Executes the operations of the log machine on one release's own log, one per call from Python. */
public final class LogDriver extends ReplyingDriver {
    private static final List<String> COMPARED =
        List.of(".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", ".cleaned",
            ".swap", ".deleted", "partition.metadata");

    /** The names of a log's directory, as in conformance/operations/log.py. */
    private static final List<String> DIRECTORIES =
        List.of("t-0", "t-0.0123456789abcdef0123456789abcdef-future", "t-0.0123456789abcdef0123456789abcdef-delete");
    private static final int DELETED = 2;
    private static final int MAGIC = 16;

    private final LogEnvironment environment;
    private LogAdapter adapter;
    private boolean open;

    public LogDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        super(loader, kinds, buffer, operations);
        environment = new LogEnvironment(loader);
    }

    /** Returns the name of the class under test. */
    public String className() throws Throwable {
        return adapter().parts.type.getName();
    }

    /** Finds the classes and members that the operations need; throws Missing if one does not exist. */
    public void prepare() throws Throwable {
        adapter();
    }

    /** Returns the first bytes of a fetch from an offset, up to the log's end, or null with the error in text(). */
    public byte[] read(long offset) {
        reply.begin();
        try {
            return adapter.read(offset);
        } catch (Throwable thrown) {
            reply.failed(thrown);
            return null;
        }
    }

    /** Starts an example; the log will be in this directory. */
    @Override
    public void begin(String directory) {
        super.begin(directory);
        if (adapter != null)
            adapter.forget();
    }

    /** Releases everything that is open, as a killed process does. */
    @Override
    public void abandon() {
        if (open)
            adapter.abandon();
        open = false;
        environment.forgetTasks();
    }

    private LogAdapter adapter() throws Throwable {
        if (adapter == null)
            adapter = new LogAdapter(loader, environment);
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

    /** arguments: log start offset, recovery point, clean, now. */
    private void open(Map<String, String> settings, long[] arguments) throws Throwable {
        environment.setClock(arguments[3]);
        LogAdapter log = adapter();
        log.open(new File(directory), settings, arguments[0], arguments[1], arguments[2] != 0);
        open = true;
    }

    @Override
    public void execute(String operation, long[] arguments, byte[] bytes) {
        if (operation.equals("open_log"))
            abandon();
        long a = arguments.length > 0 ? arguments[0] : 0;
        long b = arguments.length > 1 ? arguments[1] : 0;
        run(() -> {
            switch (operation) {
                case "open_log" -> open(LogAdapter.settings(text(bytes)), arguments);
                case "append_as_leader" -> adapter.addResult(adapter.appendAsLeader(bytes, (int) a, b != 0), reply);
                case "verify_transaction" ->
                    reply.add(adapter.verify(a, (int) b, (short) arguments[2], arguments[3] != 0) ? 1 : 0);
                case "append_verified" -> adapter.addResult(
                    adapter.appendVerified(bytes, (int) a, (short) b, arguments[2] != 0, arguments[3]), reply);
                case "append_as_follower" -> adapter.addResult(adapter.appendAsFollower(bytes, (int) a), reply);
                case "list_offsets" -> {
                    reply.add(arguments.length);
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
                case "set_clock" -> environment.setClock(a);
                case "clean_log" -> {
                    for (long number : adapter.clean(new File(directory), arguments))
                        reply.add(number);
                }
                case "crash_cleaning" -> crashCleaning(arguments);
                case "assign_epoch" -> adapter.assignEpoch((int) a, b);
                case "read_log" -> addBatch(adapter.read(a));
                case "fetch" ->
                    adapter.fetches.fetch(a, (int) b, (int) arguments[2], arguments[3] != 0, reply);
                case "bytes_after" -> adapter.fetches.bytesAfter(a, (int) b, reply);
                case "raise_high_watermark" -> adapter.fetches.raiseHighWatermark(a, reply);
                case "offset_snapshot" -> adapter.offsetSnapshot(reply);
                case "end_offset_for_epoch" -> adapter.endOffsetForEpoch((int) a, reply);
                case "rename_log" -> adapter.renameDirectory(DIRECTORIES.get((int) a), a == DELETED);
                case "delete_log" -> {
                    adapter.delete();
                    open = false;
                }
                case "fail_log" -> adapter.fail();
                case "assign_topic_id" -> adapter.assignTopicId(a);
                case "topic_id" -> adapter.topicId(reply);
                case "late_transactions" -> reply.add(adapter.lateTransactions(arguments));
                case "expire_producers" -> environment.expireProducers();
                default -> throw new UnsupportedOperationException("operation " + operation);
            }
        });
    }

    /** Adds the fields of a batch, as batches.first_batch of Python does; nothing for no bytes. */
    private void addBatch(byte[] bytes) {
        if (bytes.length == 0)
            return;
        ByteBuffer batch = ByteBuffer.wrap(bytes);
        CRC32C sum = new CRC32C();
        sum.update(bytes);
        for (long number : new long[] {batch.getLong(0), bytes.length, sum.getValue()})
            reply.add(number);
        boolean hasHeader = bytes.length > MAGIC && bytes[MAGIC] == 2;
        reply.add(hasHeader ? batch.getInt(12) : -1);
        reply.add(hasHeader ? batch.getLong(0) + batch.getInt(23) : -1);
        reply.add(hasHeader ? batch.getInt(57) : -1);
        reply.add(hasHeader ? batch.getLong(35) : -1);
    }

    /** Runs a cleaning round and kills the process during or after it. */
    private void crashCleaning(long[] arguments) {
        try {
            adapter.clean(new File(directory), arguments);
        } catch (Throwable ignored) {
            // the kill, or an error that the cleaner thread would only log
        } finally {
            abandon();
        }
    }

    @Override
    boolean settle() throws Throwable {
        environment.runTasks();
        return open;
    }

    @Override
    void addState() throws Throwable {
        adapter.state(reply);
    }
}
