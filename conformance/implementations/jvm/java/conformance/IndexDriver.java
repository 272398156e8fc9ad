package conformance;

import java.nio.ByteBuffer;
import java.util.Map;

/** Executes the operations of the index machines on one release's own index classes. */
public final class IndexDriver extends ReplyingDriver {
    private final IndexAdapter[] adapters = new IndexAdapter[3];
    private IndexAdapter current;

    public IndexDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        super(loader, kinds, buffer, operations);
    }

    /** Releases everything that is open, as a killed process does. */
    @Override
    public void abandon() {
        if (current != null)
            current.abandon();
        current = null;
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
    public void execute(String operation, long[] arguments, byte[] bytes) {
        switch (operation) {
            case "open" -> open((int) arguments[0], text(bytes), arguments[1], (int) arguments[2], arguments[3] != 0);
            case "rename" -> run(() -> current.rename(file(text(bytes))));
            case "crash" -> run(this::abandon);
            default -> run(() -> current.execute(operation, arguments, reply));
        }
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

    /** Finds the classes and members that a kind of index needs; throws Missing if one does not exist. */
    public void prepare(int kind) throws Throwable {
        adapter(kind);
    }

    @Override
    boolean settle() {
        return current != null;
    }

    @Override
    void addState() throws Throwable {
        current.state(reply);
    }
}
