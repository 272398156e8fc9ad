package conformance;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * The points at which Kafka's classes may be interrupted: every access to a field that changes, and to a buffer.
 *
 * <p>One operation is interrupted at one of its points, others run there from beginning to end, and it continues. That
 * needs no second thread: what is shared are the object's fields, its buffer and its file. An operation that would wait
 * for a lock that the interrupted one holds cannot run there. A copy of this class lives in the class loader of each
 * release that is interrupted.
 */
public final class Switch {
    /** An operation would have to wait for the interrupted operation. */
    public static final class Waits extends Error {
        private static final long serialVersionUID = 1;
    }

    /** What the interrupted operation has locked. */
    private static final List<Lock> HELD = new ArrayList<>();
    private static Runnable others;
    private static int left;
    private static boolean inside;
    private static boolean waited;
    private static int points;
    private static String where = "";

    private Switch() {}

    /** The others run at the point of this number, from 0 on; at none if it is negative. */
    public static void arm(int point, Runnable operations) {
        HELD.clear();
        others = operations;
        left = point;
        inside = false;
        waited = false;
        points = 0;
        where = "";
    }

    /** How many points there were; the first operation alone has them. */
    public static int points() {
        return points;
    }

    /** Whether the others would have had to wait; what was thrown to say so may have been caught. */
    public static boolean waited() {
        return waited;
    }

    /** The point at which the others ran; empty if they did not. */
    public static String where() {
        return where;
    }

    /** Kafka's classes come by here. */
    public static void point(String at) {
        if (inside || others == null)
            return;
        points++;
        if (left-- != 0)
            return;
        where = at;
        inside = true;
        try {
            others.run();
        } finally {
            inside = false;
        }
    }

    /** In place of Lock.lock. */
    public static void lock(Lock lock) {
        point("lock");
        if (!inside) {
            lock.lock();
            HELD.add(lock);
        } else if (excluded(lock) || !lock.tryLock()) {
            waited = true;
            throw new Waits();
        }
    }

    /** In place of Lock.unlock. */
    public static void unlock(Lock lock) {
        lock.unlock();
        if (!inside)
            HELD.remove(lock);
    }

    /** Whether the interrupted operation keeps others from a lock; an index has one read-write lock at most. */
    private static boolean excluded(Lock lock) {
        boolean reads = lock instanceof ReentrantReadWriteLock.ReadLock;
        for (Lock held : HELD)
            if (reads ? held instanceof ReentrantReadWriteLock.WriteLock : held == lock)
                return true;
        return false;
    }
}
