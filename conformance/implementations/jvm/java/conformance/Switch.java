package conformance;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Interruption of Kafka's classes at points: before every access to a changing field, to a buffer or to a file.
 *
 * <p>A search uses one thread: at one point of an operation, the other operations run from beginning to end, then the first
 * one continues. Objects, buffers and files are shared, so no second thread is needed. An operation that would wait for a
 * lock of the interrupted operation cannot run at that point.
 *
 * <p>A replay uses two threads, of which one runs at a time. A thread hands over to the other one at the point that the
 * schedule names, when it must wait for a lock, and when it has finished. Each release has a copy of this class in its class
 * loader.
 */
public final class Switch {
    /** Error: both threads wait for each other. */
    public static final class Deadlock extends Error {
        private static final long serialVersionUID = 1;
    }

    /** Error: the next access would be to unmapped memory, which would end the process. */
    public static final class Unmapped extends Error {
        private static final long serialVersionUID = 1;
    }

    /** Error: the other operation would wait for the interrupted one. */
    public static final class Waits extends Error {
        private static final long serialVersionUID = 1;
    }

    /** One of the two threads. */
    private static final class Track {
        final int number;
        final int stop;
        volatile Thread thread;
        volatile boolean done;
        volatile boolean waits;
        volatile boolean stuck;
        int points;
        String where = "";

        Track(int number, int stop) {
            this.number = number;
            this.stop = stop;
        }
    }

    private static final long LOOK_NANOS = 300_000;
    private static final int LOOKS = 4;

    private static volatile Track[] tracks;
    private static volatile Track[] last;
    private static volatile int turn;
    private static volatile boolean waited;
    private static final List<String> SEEN = Collections.synchronizedList(new ArrayList<>());
    private static final Map<Object, ReentrantLock> MONITORS = Collections.synchronizedMap(new IdentityHashMap<>());
    private static final Map<Object, Object> ROOTS = Collections.synchronizedMap(new IdentityHashMap<>());
    private static final Set<Object> GONE = Collections.newSetFromMap(Collections.synchronizedMap(new IdentityHashMap<>()));

    /** Locks of the interrupted operation; and for each read or write lock, its ReadWriteLock. */
    private static final List<Object> HELD = new ArrayList<>();
    private static final Map<Object, Object> HALVES = Collections.synchronizedMap(new IdentityHashMap<>());
    private static volatile Thread nesting;
    private static Runnable nested;
    private static boolean inside;

    private Switch() {}

    /**
     * Runs an operation, and the others at one of its points; if it has no such point, the others run after it.
     *
     * @param first the operation that is interrupted
     * @param others the operations that run then
     * @param stop the number of the point, from 0; negative for none
     */
    public static void nest(Runnable first, Runnable others, int stop) {
        last = new Track[] {new Track(0, stop), new Track(1, -1)};
        waited = false;
        inside = false;
        nested = others;
        SEEN.clear();
        HELD.clear();
        nesting = Thread.currentThread();
        try {
            first.run();
            if (last[0].where.isEmpty()) {
                inside = true;
                others.run();
            }
        } finally {
            nesting = null;
        }
    }

    private static void pointOfNest(String at) {
        Track track = last[inside ? 1 : 0];
        SEEN.add(track.number + " " + at);
        if (track.points++ != track.stop)
            return;
        track.where = at;
        inside = true;
        try {
            nested.run();
        } finally {
            inside = false;
        }
    }

    private static void lockOfNest(Lock lock) {
        pointOfNest("lock");
        if (!inside) {
            lock.lock();
            HELD.add(lock);
        } else if (excluded(lock) || !lock.tryLock()) {
            waited = true;
            throw new Waits();
        }
    }

    /** Returns true if the interrupted operation holds a lock, or the other lock of its ReadWriteLock. */
    private static boolean excluded(Lock lock) {
        boolean reads = lock instanceof ReentrantReadWriteLock.ReadLock;
        for (Object held : HELD)
            if (held == lock ? !reads : HALVES.containsKey(lock) && HALVES.get(held) == HALVES.get(lock))
                return true;
        return false;
    }

    /** Replaces ReadWriteLock.readLock. */
    public static Lock readLock(ReadWriteLock both) {
        HALVES.put(both.readLock(), both);
        return both.readLock();
    }

    /** Replaces ReadWriteLock.writeLock. */
    public static Lock writeLock(ReadWriteLock both) {
        HALVES.put(both.writeLock(), both);
        return both.writeLock();
    }

    /**
     * Runs two operations, the second one in the middle of the first.
     *
     * @param first the operation that begins
     * @param others the operations that run at this point
     * @param stop the point at which the first one hands over, from 0; negative for none: the others then run after it
     * @param back the point at which the others hand back, or a negative number if they run to their end
     */
    public static void run(Runnable first, Runnable others, int stop, int back) throws InterruptedException {
        Track[] both = {new Track(0, stop), new Track(1, back)};
        waited = false;
        turn = 0;
        SEEN.clear();
        Thread second = new Thread(() -> execute(both[1], others), "interleaved");
        second.setDaemon(true);
        both[0].thread = Thread.currentThread();
        both[1].thread = second;
        last = both;
        tracks = both;
        second.start();
        execute(both[0], first);
        second.join();
        tracks = null;
    }

    private static void execute(Track track, Runnable operations) {
        await(track);
        try {
            operations.run();
        } finally {
            track.done = true;
            Track other = tracks[1 - track.number];
            turn = other.number;
            LockSupport.unpark(other.thread);
        }
    }

    /** Returns the number of points in the last run; track: 0 for the first operation, 1 for the others. */
    public static int points(int track) {
        return last[track].points;
    }

    /** Returns the point at which an operation handed over in the last run; empty if it did not. */
    public static String where(int track) {
        return last[track].where;
    }

    /** Notes that an operation would wait for a lock that is not in Kafka's code, such as one of a library. */
    public static void hasWaited() {
        waited = true;
    }

    /** Returns true if one thread had to wait for the other one in the last run. */
    public static boolean waited() {
        return waited;
    }

    /** Returns the points of the last run in order, each as the number of the operation, a blank, and the point. */
    public static String[] seen() {
        return SEEN.toArray(new String[0]);
    }

    private static Track current() {
        Track[] both = tracks;
        if (both == null)
            return null;
        Thread thread = Thread.currentThread();
        return both[0].thread == thread ? both[0] : both[1].thread == thread ? both[1] : null;
    }

    private static void await(Track track) {
        int spins = 0;
        while (turn != track.number)
            if (++spins > 200)
                LockSupport.parkNanos(Switch.class, LOOK_NANOS);
            else
                Thread.onSpinWait();
    }

    /** Lets the other thread run until it hands back, has finished, or waits for a lock of this thread. */
    private static void handOver(Track track) {
        Track other = tracks[1 - track.number];
        if (other.done || other.stuck)
            return;
        turn = other.number;
        LockSupport.unpark(other.thread);
        int looks = 0;
        int spins = 0;
        while (turn != track.number) {
            if (++spins <= 200) {
                Thread.onSpinWait();
                continue;
            }
            LockSupport.parkNanos(Switch.class, LOOK_NANOS);
            looks = waitsElsewhere(other) ? looks + 1 : 0;
            if (looks >= LOOKS && turn != track.number) {
                other.stuck = true;
                waited = true;
                turn = track.number;
            }
        }
    }

    /** Returns true if a thread waits for a monitor or lock that is not in Kafka's code. */
    private static boolean waitsElsewhere(Track other) {
        Thread.State state = other.thread.getState();
        return state == Thread.State.BLOCKED
            || state != Thread.State.RUNNABLE && LockSupport.getBlocker(other.thread) != Switch.class;
    }

    /** Is called by Kafka's classes at every point. */
    public static void point(String at) {
        if (nesting == Thread.currentThread()) {
            pointOfNest(at);
            return;
        }
        Track track = current();
        if (track == null)
            return;
        if (turn != track.number)
            await(track);
        track.stuck = false;
        SEEN.add(track.number + " " + at);
        if (track.points++ != track.stop)
            return;
        track.where = at;
        handOver(track);
    }

    /** Replaces Lock.lock. */
    public static void lock(Lock lock) {
        if (nesting == Thread.currentThread()) {
            lockOfNest(lock);
            return;
        }
        Track track = current();
        if (track == null) {
            lock.lock();
            return;
        }
        point("lock");
        for (int tries = 0; !lock.tryLock(); tries++) {
            Track other = tracks[1 - track.number];
            if (other.done || other.waits || tries > 3)
                throw new Deadlock();
            waited = true;
            other.stuck = false;
            track.waits = true;
            handOver(track);
            track.waits = false;
        }
    }

    /** Replaces Lock.unlock. */
    public static void unlock(Lock lock) {
        lock.unlock();
        if (nesting == Thread.currentThread() && !inside)
            HELD.remove(lock);
    }

    /** Replaces the beginning of a synchronized block. */
    public static void enter(Object monitor) {
        lock(MONITORS.computeIfAbsent(monitor, each -> new ReentrantLock()));
    }

    /** Replaces the end of a synchronized block. */
    public static void exit(Object monitor) {
        unlock(MONITORS.get(monitor));
    }

    /** Plants a race: replaces AtomicInteger.getAndAdd by a read and a write. */
    public static int addInSteps(AtomicInteger number, int more) {
        int before = number.get();
        point("addInSteps");
        number.set(before + more);
        return before;
    }

    // -- mapped memory: reading unmapped memory would end the process ---------------------------------------

    private static void check(ByteBuffer buffer) {
        if (GONE.contains(ROOTS.getOrDefault(buffer, buffer)))
            throw new Unmapped();
    }

    /** Replaces unmapping; the memory remains mapped until everything is closed. */
    public static void unmap(String name, ByteBuffer buffer) {
        point("unmap");
        GONE.add(Objects.requireNonNull(buffer));
    }

    public static MappedByteBuffer duplicate(MappedByteBuffer buffer) {
        return (MappedByteBuffer) duplicate((ByteBuffer) buffer);
    }

    public static ByteBuffer duplicate(ByteBuffer buffer) {
        check(buffer);
        ByteBuffer copy = buffer.duplicate();
        ROOTS.put(copy, ROOTS.getOrDefault(buffer, buffer));
        return copy;
    }

    public static int getInt(ByteBuffer buffer, int at) {
        check(buffer);
        return buffer.getInt(at);
    }

    public static long getLong(ByteBuffer buffer, int at) {
        check(buffer);
        return buffer.getLong(at);
    }

    public static ByteBuffer putInt(ByteBuffer buffer, int value) {
        check(buffer);
        return buffer.putInt(value);
    }

    public static ByteBuffer putLong(ByteBuffer buffer, long value) {
        check(buffer);
        return buffer.putLong(value);
    }

    public static MappedByteBuffer force(MappedByteBuffer buffer) {
        check(buffer);
        return buffer.force();
    }

    /** Unmaps all buffers whose unmapping was delayed; everything must be closed. */
    public static void unmapAll() {
        ROOTS.clear();
        HALVES.clear();
        MONITORS.clear();
        List<Object> gone;
        synchronized (GONE) {  // a thread of the cache may still be adding buffers
            gone = new ArrayList<>(GONE);
            GONE.clear();
        }
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field instance = type.getDeclaredField("theUnsafe");
            instance.setAccessible(true);
            Method cleaner = type.getMethod("invokeCleaner", ByteBuffer.class);
            for (Object buffer : gone)
                cleaner.invoke(instance.get(null), buffer);
        } catch (ReflectiveOperationException never) {
            throw new AssertionError(never);
        }
    }
}
