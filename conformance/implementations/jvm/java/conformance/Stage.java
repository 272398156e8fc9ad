package conformance;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** The world around a log: a clock that stands still, and a scheduler whose tasks run when the stage says so. */
final class Stage {
    private final ClassLoader loader;
    private final Deque<Object> tasks = new ArrayDeque<>();
    private long nowMs;
    private int place = -1;
    private long timesLeft;

    Stage(ClassLoader loader) {
        this.loader = loader;
    }

    void setClock(long nowMs) {
        this.nowMs = nowMs;
    }

    long now() {
        return nowMs;
    }

    /** The process is killed when it comes to a place, 0 a chunk of bytes and 1 a deletion, for the times-th time. */
    void killAt(int place, long times) {
        this.place = place;
        timesLeft = times;
    }

    private void come(int reached) {
        if (reached == place && --timesLeft == 0)
            throw new IllegalStateException("killed");
    }

    /** What a cleaner asks before it reads on: a function of either language. */
    Object watched(Class<?> type) {
        return proxy(type, (function, method, arguments) -> {
            if (!method.getName().equals("apply") && !method.getName().equals("accept"))
                return otherwise(function, method, arguments);
            come(0);
            return null;
        });
    }

    void forgetTasks() {
        tasks.clear();
    }

    /** Runs what was scheduled to run once, as if its delay had passed; a task may schedule another. */
    void runTasks() throws Throwable {
        while (!tasks.isEmpty()) {
            Object task = tasks.poll();
            if (task instanceof Runnable runnable)
                runnable.run();
            else
                Members.call(Class.forName("scala.Function0", true, loader).getMethod("apply"), task);
        }
    }

    /** An org.apache.kafka.common.utils.Time that shows the stage's time. */
    Object clock(Class<?> type) {
        return proxy(type, (clock, method, arguments) -> switch (method.getName()) {
            case "milliseconds", "hiResClockMs" -> nowMs;
            case "nanoseconds" -> TimeUnit.MILLISECONDS.toNanos(nowMs);
            case "sleep" -> null;
            default -> otherwise(clock, method, arguments);
        });
    }

    /** A Scheduler of either era; what is to run again and again never runs. */
    Object scheduler(Class<?> type) {
        return proxy(type, (scheduler, method, arguments) -> {
            if (!method.getName().equals("schedule"))
                return otherwise(scheduler, method, arguments);
            // (name, task, delay, period[, unit]); a period that is not positive means once.
            if (String.valueOf(arguments[0]).equals("delete-file"))
                come(1);
            if ((Long) arguments[3] <= 0)
                tasks.add(arguments[1]);
            return proxy(ScheduledFuture.class, Stage::otherwise);
        });
    }

    /** Something that listens and does nothing. */
    Object deaf(Class<?> type) {
        return proxy(type, Stage::otherwise);
    }

    private Object proxy(Class<?> type, InvocationHandler handler) {
        return Proxy.newProxyInstance(loader, new Class<?>[] {type}, handler);
    }

    private static Object otherwise(Object proxy, Method method, Object[] arguments) throws Throwable {
        if (method.isDefault())
            return InvocationHandler.invokeDefault(proxy, method, arguments);
        return switch (method.getName()) {
            case "hashCode" -> System.identityHashCode(proxy);
            case "equals" -> proxy == arguments[0];
            case "toString" -> method.getDeclaringClass().getSimpleName();
            default -> method.getReturnType() == boolean.class ? (Object) false : null;
        };
    }
}
