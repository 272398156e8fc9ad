package bench;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Calls {@code lookup(long)} of an index many times without leaving the JVM; returns the nanoseconds of processor that took. */
public final class LookupLoop {
    private LookupLoop() { }

    public static Object sink;

    /** The class is loaded by a separate class loader, so it is called as generated code calls it: by a method handle. */
    public static long run(Object index, long[] targets) throws Throwable {
        MethodHandle found = MethodHandles.publicLookup().unreflect(index.getClass().getMethod("lookup", long.class));
        MethodHandle lookup = found.bindTo(index).asType(MethodType.methodType(Object.class, long.class));
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long started = clock.getCurrentThreadCpuTime();
        Object last = null;
        for (long target : targets) {
            last = lookup.invokeExact(target);
        }
        sink = last;
        return clock.getCurrentThreadCpuTime() - started;
    }
}
