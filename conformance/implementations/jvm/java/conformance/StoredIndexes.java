package conformance;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.Map;

/** Remote storage in memory, with one release's interface. It returns index files, or fails as the test requests. */
final class StoredIndexes {
    // The order of ANSWERS in conformance/operations/cache.py.
    private static final int MISSING = 1;
    private static final int FAILS = 2;
    private static final int BREAKS = 3;

    private record Stored(int answer, byte[] content) {}

    private final Map<String, Stored> stored = new HashMap<>();
    private final Class<?> failure;
    private final Class<?> notFound;
    private final Naming naming;
    final Object manager;

    /** Function that returns the id of a segment, as Kafka prints it. */
    interface Naming {
        String idOf(Object segment) throws Throwable;
    }

    /** manager: the name of the interface; exceptions: the package of its exceptions, which have Kafka's names. */
    StoredIndexes(ClassLoader loader, String manager, String exceptions, Naming naming) {
        failure = Members.type(loader, exceptions + "RemoteStorageException");
        notFound = Members.type(loader, exceptions + "RemoteResourceNotFoundException");
        this.naming = naming;
        Class<?>[] types = {Members.type(loader, manager)};
        this.manager = Proxy.newProxyInstance(loader, types, this::called);
    }

    /** Returns Kafka's RemoteStorageManager in memory. */
    static StoredIndexes kafka(ClassLoader loader) {
        String storage = "org.apache.kafka.server.log.remote.storage.";
        Members.Reader segmentId =
            new Members.Reader(Members.type(loader, storage + "RemoteLogSegmentMetadata"), "remoteLogSegmentId");
        Members.Reader id = new Members.Reader(Members.type(loader, storage + "RemoteLogSegmentId"), "id");
        return new StoredIndexes(loader, storage + "RemoteStorageManager", storage,
            segment -> id.read(segmentId.read(segment)).toString());
    }

    void forget() {
        stored.clear();
    }

    /** kind: the name of one of Kafka's index types. */
    void put(String segment, String kind, int answer, byte[] content) {
        stored.put(segment + kind, new Stored(answer, content));
    }

    private Object called(Object proxy, Method method, Object[] arguments) throws Throwable {
        return switch (method.getName()) {
            case "fetchIndex" -> fetch(naming.idOf(arguments[0]), arguments[1].toString());
            case "toString" -> "indexes in memory";
            case "hashCode" -> System.identityHashCode(proxy);
            case "equals" -> proxy == arguments[0];
            default -> throw new UnsupportedOperationException(method.getName());
        };
    }

    private InputStream fetch(String segment, String kind) throws Throwable {
        Stored found = stored.get(segment + kind);
        if (found == null || found.answer == MISSING)
            throw exception(notFound, "there is no " + kind + " of " + segment);
        if (found.answer == FAILS)
            throw exception(failure, "storage does not answer");
        return found.answer == BREAKS ? new Breaking(found.content) : new ByteArrayInputStream(found.content);
    }

    private static Throwable exception(Class<?> type, String text) throws Throwable {
        return (Throwable) type.getConstructor(String.class).newInstance(text);
    }

    /** Stream that throws an exception at its end. */
    private static final class Breaking extends InputStream {
        private final InputStream content;

        Breaking(byte[] content) {
            this.content = new ByteArrayInputStream(content);
        }

        @Override
        public int read() throws IOException {
            int next = content.read();
            if (next < 0)
                throw new IOException("the connection is lost");
            return next;
        }

        @Override
        public int read(byte[] bytes, int at, int length) throws IOException {
            int read = content.read(bytes, at, length);
            if (read < 0)
                throw new IOException("the connection is lost");
            return read;
        }
    }
}
