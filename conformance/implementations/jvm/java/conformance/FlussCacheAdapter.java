package conformance;

import java.io.File;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.UUID;

/**
 * Adapter of Fluss's RemoteLogIndexCache, by reflection: a fork of Kafka's cache without transaction indexes, age limits
 * and changes of the maximum size. A lookup of a timestamp takes no starting offset.
 */
final class FlussCacheAdapter extends CacheAdapter {
    private static final String FLUSS = "org.apache.fluss.";
    private static final String REMOTE = FLUSS + "server.log.remote.";

    private final Constructor<?> constructor;
    private final Constructor<?> builder;
    private final Class<?> builderType;
    private final Object bucket;
    private final Object path;

    FlussCacheAdapter(ClassLoader loader) throws Throwable {
        super(loader, storage(loader), REMOTE + "RemoteLogIndexCache", "markedForCleanup", "offsetIndex", "timeIndex");
        constructor = Members.constructor(type, 3);
        builderType = Members.type(loader, FLUSS + "remote.RemoteLogSegment$Builder");
        builder = Members.constructor(builderType, 0);
        bucket = Members.create(Members.constructor(Members.type(loader, FLUSS + "metadata.TableBucket"), 2), 7L, 0);
        path = Members.call(Members.method(Members.type(loader, FLUSS + "metadata.PhysicalTablePath"), "of", 3), null,
            "d", "t", null);
    }

    private static StoredIndexes storage(ClassLoader loader) {
        Members.Reader id =
            new Members.Reader(Members.type(loader, FLUSS + "remote.RemoteLogSegment"), "remoteLogSegmentId");
        return new StoredIndexes(loader, REMOTE + "RemoteLogStorage", FLUSS + "exception.",
            segment -> kafkaText((UUID) id.read(segment)));
    }

    private static String kafkaText(UUID id) {
        byte[] bytes = ByteBuffer.allocate(16).putLong(id.getMostSignificantBits())
            .putLong(id.getLeastSignificantBits()).array();
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    @Override
    boolean countsEntries() {
        return false;
    }

    @Override
    Object create(String directory, long maxSize, long ttlMs) throws Throwable {
        return Members.create(constructor, maxSize, stored.manager, new File(directory));
    }

    @Override
    Object id(String text) {
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getUrlDecoder().decode(text));
        return new UUID(bytes.getLong(), bytes.getLong());
    }

    @Override
    String text(Object id) {
        return kafkaText((UUID) id);
    }

    @Override
    Object segment(String id, long start) throws Throwable {
        Object parts = Members.create(builder);
        set(parts, "remoteLogSegmentId", id(id));
        set(parts, "remoteLogStartOffset", start);
        set(parts, "remoteLogEndOffset", start + 1000);
        set(parts, "maxTimestamp", 5000L);
        set(parts, "segmentSizeInBytes", 1000);
        set(parts, "physicalTablePath", path);
        set(parts, "tableBucket", bucket);
        return Members.call(Members.method(builderType, "build", 0), parts);
    }

    private void set(Object parts, String name, Object value) throws Throwable {
        Members.call(Members.method(builderType, name, 1), parts, value);
    }

    @Override
    long lookupOffset(String id, long start, long offset) throws Throwable {
        return ((Number) Members.call(Members.method(type, "lookupPosition", 2), cache, segment(id, start), offset))
            .longValue();
    }

    /** Returns a position as Kafka's cache does; Fluss's cache returns the offset, its entries return both. */
    @Override
    long lookupTimestamp(String id, long start, long timestamp, long from) throws Throwable {
        return position(positionByTime(entry(id, start), timestamp, from));
    }

    @Override
    void aborted(Object entry, long from, long to, Reply reply) {
        throw new UnsupportedOperationException("transaction index");
    }

    @Override
    Object positionByTime(Object entry, long timestamp, long from) throws Throwable {
        return Members.call(Members.method(entryType, "lookupTimestamp", 1), entry, timestamp);
    }

    @Override
    void resize(long maxSize) {
        throw new UnsupportedOperationException("resize");
    }

    /** Returns -1: the size is private, and its effect is compared, which is what the cache evicts. */
    @Override
    long size(Object entry) {
        return -1;
    }
}
