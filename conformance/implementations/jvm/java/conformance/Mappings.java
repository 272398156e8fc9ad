package conformance;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;

/** Limit of mapped files. Releases before KAFKA-19390 leave every remapped buffer to the garbage collector. */
final class Mappings {
    /** Number of mappings that starts a collection. The kernel allows 65,530 per process; a removed file uses memory while mapped. */
    private static final long MANY = 8_192;
    /** Number of steps between two counts; a step adds a few mappings at most. */
    private static final int STEPS_BETWEEN_LOOKS = 1_024;

    private static final BufferPoolMXBean MAPPED = pool();
    private static int steps;

    private Mappings() {}

    private static BufferPoolMXBean pool() {
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class))
            if (pool.getName().equals("mapped"))
                return pool;
        throw new IllegalStateException("this Java does not count its mapped buffers");
    }

    /** Is called before a step that may map files; collects unused mappings if there are many. */
    static synchronized void more() {
        if (++steps % STEPS_BETWEEN_LOOKS == 0 && MAPPED.getCount() > MANY)
            System.gc();
    }
}
