package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Executes the operations of the cache machine on one release's own RemoteIndexCache. */
public class CacheDriver extends ReplyingDriver {
    private static final String DIRECTORY = "remote-log-index-cache";
    private static final String[] KINDS = {"OFFSET", "TIMESTAMP", "TRANSACTION"};

    private CacheAdapter adapter;
    private Object held;
    private List<Long> state = List.of();
    private boolean tidies;

    public CacheDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        super(loader, kinds, buffer, operations);
    }

    /** Finds the classes and members that the operations need; throws Missing if one does not exist. */
    public void prepare() throws Throwable {
        adapter();
    }

    /** Starts an example; the cache will be below this directory. */
    @Override
    public void begin(String directory) {
        super.begin(directory);
        if (adapter != null)
            adapter.stored.forget();
        reply.inside(directory + "/" + DIRECTORY);
    }

    @Override
    public void abandon() {
        held = null;
        if (adapter != null)
            adapter.abandon();
    }

    private CacheAdapter adapter() throws Throwable {
        if (adapter == null)
            adapter = newAdapter();
        return adapter;
    }

    CacheAdapter newAdapter() throws Throwable {
        return new KafkaCacheAdapter(loader);
    }

    @Override
    public File file(String path) {
        File cache = new File(directory, DIRECTORY);
        return path.isEmpty() ? cache : new File(cache, path);
    }

    @Override
    public boolean comparesAll() {
        return true;
    }

    @Override
    public void execute(String operation, long[] arguments, byte[] bytes) {
        if (operation.equals("open_cache"))
            abandon();
        Mappings.more();
        tidies = !operation.equals("pass_time") || arguments[1] != 0;
        // settle() executes the tasks of all caches. In the middle of another cache's lookup it would evict the entry found.
        synchronized (CacheAdapter.class) {
            run(() -> execute(adapter(), operation, Arrays.copyOf(arguments, 4), bytes));
        }
    }

    @Override
    boolean settle() throws Throwable {
        if (adapter == null || !adapter.isOpen())
            return false;
        adapter.settle(tidies);
        if (tidies)
            state = adapter.state();  // reading the state makes the caching library expire old entries
        return true;
    }

    @Override
    void addState() {
        for (long number : state)
            reply.add(number);
    }

    private void execute(CacheAdapter cache, String operation, long[] args, byte[] bytes) throws Throwable {
        if (operation.equals("store_index")) {
            int end = indexOf(bytes, (byte) 0);
            cache.stored.put(text(Arrays.copyOf(bytes, end)), KINDS[(int) args[0]], (int) args[1],
                Arrays.copyOfRange(bytes, end + 1, bytes.length));
            return;
        }
        if (!operation.equals("open_cache") && !operation.equals("crash_cache") && !cache.isOpen())
            throw new NullPointerException();
        String id = text(bytes);
        switch (operation) {
            case "open_cache" -> cache.open(directory, args[0], args[1], args[2]);
            case "fetch_entry" -> {
                Object entry = cache.entry(id, args[0]);
                if (args[1] != 0)
                    held = entry;
            }
            case "look_up_offset" -> reply.add(cache.lookupOffset(id, args[0], args[1]));
            case "look_up_timestamp" -> reply.add(cache.lookupTimestamp(id, args[0], args[1], args[2]));
            case "aborted_in" -> cache.aborted(cache.entry(id, args[0]), args[1], args[2], reply);
            case "remove_entries" -> cache.remove(List.of(id.split("\0")));
            case "resize_cache" -> cache.resize(args[0]);
            case "pass_time" -> cache.pass(args[0]);
            case "delete_removed" -> cache.deleteRemoved();
            case "ask_held" -> {
                if (held != null)
                    reply.add(cache.askHeld(held, args[0] != 0, args[1], args[2]));
            }
            case "close_cache" -> cache.close();
            case "crash_cache" -> abandon();
            default -> throw new UnsupportedOperationException("operation " + operation);
        }
    }

    private static int indexOf(byte[] bytes, byte wanted) {
        for (int i = 0; i < bytes.length; i++)
            if (bytes[i] == wanted)
                return i;
        return bytes.length;
    }
}
