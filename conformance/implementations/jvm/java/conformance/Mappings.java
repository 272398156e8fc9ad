package conformance;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;

/** Mapped files. Releases before KAFKA-19390 leave every remapped buffer to the collector. */
final class Mappings {
    /** The kernel allows 65,530 a process; a file that has been removed takes memory as long as it is mapped. */
    private static final long MANY = 8_192;
    /** A step makes a few at most. */
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

    /** Says that a step may map files; collects those that are not in use any more where there are many. */
    static synchronized void more() {
        if (++steps % STEPS_BETWEEN_LOOKS == 0 && MAPPED.getCount() > MANY)
            System.gc();
    }
}
