package conformance;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Environment of a log: a clock that the test sets, a scheduler whose tasks the test runs, and listeners. */
final class LogEnvironment {
    private final ClassLoader loader;
    private final Deque<Object> tasks = new ArrayDeque<>();
    private Object expiration;
    private long nowMs;
    private int place = -1;
    private long timesLeft;
    private boolean listens;
    private Long heard;

    LogEnvironment(ClassLoader loader) {
        this.loader = loader;
    }

    void setClock(long nowMs) {
        this.nowMs = nowMs;
    }

    long now() {
        return nowMs;
    }

    /** Kills the process when it reaches a place for the n-th time; place: 0 reading a chunk of bytes, 1 a deletion. */
    void killAt(int place, long times) {
        this.place = place;
        timesLeft = times;
    }

    private void reach(int reached) {
        if (reached == place && --timesLeft == 0)
            throw new IllegalStateException("killed");
    }

    /** Returns the callback that a cleaner calls before it reads a chunk: a Java or Scala function. */
    Object watched(Class<?> type) {
        return proxy(type, (function, method, arguments) -> {
            if (!method.getName().equals("apply") && !method.getName().equals("accept"))
                return defaultResult(function, method, arguments);
            reach(0);
            return null;
        });
    }

    void forgetTasks() {
        tasks.clear();
    }

    /** Runs all tasks that are scheduled once, as if their delay had passed; a task may schedule further tasks. */
    void runTasks() throws Throwable {
        while (!tasks.isEmpty())
            run(tasks.poll());
    }

    /** Runs the periodic task of the newest log that expires its idle producers. */
    void expireProducers() throws Throwable {
        run(expiration);
    }

    private void run(Object task) throws Throwable {
        if (task instanceof Runnable runnable)
            runnable.run();
        else
            Members.call(Class.forName("scala.Function0", true, loader).getMethod("apply"), task);
    }

    /** Returns an org.apache.kafka.common.utils.Time with the time that the test has set. */
    Object clock(Class<?> type) {
        return proxy(type, (clock, method, arguments) -> switch (method.getName()) {
            case "milliseconds", "hiResClockMs" -> nowMs;
            case "nanoseconds" -> TimeUnit.MILLISECONDS.toNanos(nowMs);
            case "sleep" -> null;
            default -> defaultResult(clock, method, arguments);
        });
    }

    /** Returns a Scheduler of the Scala or the Java interface; periodic tasks run only on request. */
    Object scheduler(Class<?> type) {
        return proxy(type, (scheduler, method, arguments) -> {
            if (!method.getName().equals("schedule"))
                return defaultResult(scheduler, method, arguments);
            // (name, task, delay, period[, unit]); a period that is not positive means once.
            if (String.valueOf(arguments[0]).equals("delete-file"))
                reach(1);
            if ((Long) arguments[3] <= 0)
                tasks.add(arguments[1]);
            else if (String.valueOf(arguments[0]).equals("PeriodicProducerExpirationCheck"))
                expiration = arguments[1];
            return proxy(ScheduledFuture.class, LogEnvironment::defaultResult);
        });
    }

    /** Returns a listener that keeps the last high watermark that it received. */
    Object listener(Class<?> type) {
        heard = null;
        listens = true;
        return proxy(type, (listener, method, arguments) -> {
            if (!method.getName().equals("onHighWatermarkUpdated"))
                return defaultResult(listener, method, arguments);
            heard = (Long) arguments[0];
            return null;
        });
    }

    /** Throws an exception if the listener of the newest log received another high watermark last, or none. */
    void checkHeard(long highWatermark) {
        if (listens && (heard == null || heard != highWatermark))
            throw new IllegalStateException("the listener has received " + heard + ", not the high watermark " + highWatermark);
    }

    private Object proxy(Class<?> type, InvocationHandler handler) {
        return Proxy.newProxyInstance(loader, new Class<?>[] {type}, handler);
    }

    private static Object defaultResult(Object proxy, Method method, Object[] arguments) throws Throwable {
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
