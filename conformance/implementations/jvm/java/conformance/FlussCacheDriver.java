package conformance;

import java.nio.ByteBuffer;
import java.util.Map;

/** Executes the operations of the cache machine on Fluss's RemoteLogIndexCache. */
public final class FlussCacheDriver extends CacheDriver {
    public FlussCacheDriver(
        ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        super(loader, kinds, buffer, operations);
    }

    @Override
    CacheAdapter newAdapter() throws Throwable {
        return new FlussCacheAdapter(loader);
    }
}
