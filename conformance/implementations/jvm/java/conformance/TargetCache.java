package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;

/** RemoteIndexCache whose remote storage has the indexes of two segments. */
final class TargetCache extends Target {
    private static final String[] IDS = {"AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"};
    private static final String DIRECTORY = "remote-log-index-cache";
    private static final long SIZE = 1 << 20;
    private static final long SIZE_OF_ONE = 100;
    private static final int OFTEN = 5;
    private static final long A_LONG_TIME_MS = 1L << 40;

    private final CacheAdapter adapter;
    private final long size;
    private Object held;

    /** full: true if the cache has space for one entry only. */
    TargetCache(ClassLoader loader, boolean full) throws Throwable {
        adapter = new KafkaCacheAdapter(loader);
        size = !full ? SIZE : adapter.countsEntries() ? 1 : SIZE_OF_ONE;
        for (String id : IDS) {
            ByteBuffer offsets = ByteBuffer.allocate(24);
            ByteBuffer times = ByteBuffer.allocate(36);
            for (int i = 1; i <= 3; i++) {
                offsets.putInt(10 * i).putInt(100 * i);
                times.putLong(1000 + 10 * i).putInt(10 * i);
            }
            adapter.stored.put(id, "OFFSET", 0, offsets.array());
            adapter.stored.put(id, "TIMESTAMP", 0, times.array());
            adapter.stored.put(id, "TRANSACTION", 0, new byte[0]);
        }
    }

    @Override
    void open(File directory) throws Throwable {
        empty(directory);
        held = null;
        adapter.open(directory.getPath(), size, A_LONG_TIME_MS, 0);
    }

    /** Executes an operation, and waits for work of the caching library in another thread, such as an eviction. */
    @Override
    Object execute(String[] words) throws Throwable {
        Object result = executeAlone(words);
        if (!words[0].equals("removeOnly"))
            settle();
        return result;
    }

    private static void settle() {
        ForkJoinPool.commonPool().awaitQuiescence(1, TimeUnit.SECONDS);
    }

    /** The second word is the number of a segment. */
    private Object executeAlone(String[] words) throws Throwable {
        String id = words.length > 1 ? IDS[Integer.parseInt(words[1])] : "";
        switch (words[0]) {
            case "hold" -> held = adapter.entry(id, 0);
            case "getIndexEntry" -> adapter.entry(id, 0);
            case "lookupOffset" -> {
                return adapter.lookupOffset(id, 0, Long.parseLong(words[2]));
            }
            case "lookupTimestamp" -> {
                return adapter.lookupTimestamp(id, 0, Long.parseLong(words[2]), 0);
            }
            case "entryLookup" -> {
                return adapter.askHeld(held, false, Long.parseLong(words[2]), 0);
            }
            case "entryLookupTime" -> {
                return adapter.askHeld(held, true, Long.parseLong(words[2]), 0);
            }
            case "entryClose" -> Members.call(Members.method(held.getClass(), "close", 0), held);
            case "entryCleanup" -> Members.call(Members.method(held.getClass(), "cleanup", 0), held);
            case "entryMark" -> Members.call(Members.method(held.getClass(), "markForCleanup", 0), held);
            case "remove", "removeOnly" -> adapter.remove(List.of(id));
            case "removeAll" -> adapter.remove(List.of(IDS));
            case "resizeCacheSize" -> adapter.resize(Long.parseLong(words[2]));
            case "deleteRemoved" -> adapter.deleteNow();
            case "close" -> adapter.close();
            case "fetchOften" -> {
                for (int i = 0; i < OFTEN; i++) {
                    adapter.entry(id, 0);
                    settle();
                }
            }
            case "notify" -> { }  // lets the caching library finish its pending work
            case "state" -> {
                return adapter.state();
            }
            default -> throw new UnsupportedOperationException(words[0]);
        }
        return null;
    }

    @Override
    String[] probes() {
        return new String[] {"state", "lookupOffset 0 25", "state"};
    }

    @Override
    void close() throws Throwable {
        adapter.abandon();
    }
}
