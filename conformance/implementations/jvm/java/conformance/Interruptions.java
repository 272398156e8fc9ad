package conformance;

import java.io.File;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Executes operations on one target: one operation is interrupted by the others. */
public final class Interruptions {
    /** Positions in the result of a run. */
    static final int WHERE = 1;
    static final int WAITED = 3;
    static final int OWN = 4;
    static final int STATE = 6;

    private final Method nest;
    private final Method run;
    private final Method hasWaited;
    private final Method points;
    private final Method where;
    private final Method waited;
    private final Method seen;
    private final Method unmapAll;
    private final File directory;
    private final Map<String, byte[]> batches;
    private final Target target;

    /** batches: the bytes of an append, by its offset and timestamp with a blank between them. */
    Interruptions(ClassLoader loader, File directory, Target target, Map<String, byte[]> batches) throws Throwable {
        Class<?> switches = Class.forName(Switch.class.getName(), true, loader);
        run = switches.getMethod("run", Runnable.class, Runnable.class, int.class, int.class);
        nest = switches.getMethod("nest", Runnable.class, Runnable.class, int.class);
        hasWaited = switches.getMethod("hasWaited");
        points = switches.getMethod("points", int.class);
        where = switches.getMethod("where", int.class);
        waited = switches.getMethod("waited");
        seen = switches.getMethod("seen");
        unmapAll = switches.getMethod("unmapAll");
        this.directory = directory;
        this.target = target;
        this.batches = batches;
    }

    /** Sets the bytes of an append with this offset and timestamp. */
    public void batch(String offsetAndTimestamp, byte[] bytes) {
        batches.put(offsetAndTimestamp, bytes);
    }

    /**
     * Runs operations with one interruption. Returns, in the order of the constants above: whether the first operation was
     * interrupted, and at which point; at which point the others handed back; whether one operation had to wait; the
     * results of the first operation and of the others; and the final state.
     *
     * @param setup operations that run before: a name and arguments, separated by blanks
     * @param first the interrupted operation
     * @param others the operations that run during the interruption
     * @param stop the point of the interruption, or -1 for none; then the others run after the first operation
     * @param threads true to use two threads, as in a broker; false to use one, which is faster
     * @param back with two threads, the point at which the others let the first operation continue, or -1
     */
    public String[] run(String[] setup, String first, String[] others, int stop, boolean threads, int back) throws Throwable {
        Mappings.more();
        target.open(directory);
        try {
            for (String each : setup)
                execute(each);
            String[] own = new String[1];
            List<String> results = new ArrayList<>();
            Runnable one = () -> own[0] = execute(first);
            Runnable two = () -> {
                for (String each : others)
                    results.add(execute(each));
            };
            if (threads)
                run.invoke(null, one, two, stop, back);
            else
                nest.invoke(null, one, two, stop);
            StringBuilder state = new StringBuilder();
            for (String probe : target.probes())
                state.append(probe).append('=').append(execute(probe)).append(' ');
            return new String[] {
                points.invoke(null, 0).toString(), (String) where.invoke(null, 0), (String) where.invoke(null, 1),
                waited.invoke(null).toString(), own[0], String.join(", ", results), state.toString().trim()};
        } finally {
            close();
            unmapAll.invoke(null);
        }
    }

    /**
     * Returns the results of the operations and the final state for each order without interruption: the first operation
     * runs before all others, after one of them, after two, and so on.
     */
    public String[][] orders(String[] setup, String first, String[] others) throws Throwable {
        String[][] found = new String[others.length + 1][];
        for (int before = 0; before <= others.length; before++) {
            List<String> sequence = new ArrayList<>(List.of(others));
            sequence.add(before, first);
            List<String> done = new ArrayList<>(List.of(setup));
            List<String> results = new ArrayList<>();
            String state = "";
            for (String operation : sequence) {
                String[] seen = run(done.toArray(new String[0]), operation, new String[0], -1, false, -1);
                results.add(seen[OWN]);
                state = seen[STATE];
                done.add(operation);
            }
            String own = results.remove(before);
            found[before] = new String[] {own, String.join(", ", results), state};
        }
        return found;
    }

    /** Returns the points of the last run in order, each as the number of the operation, a blank, and the point. */
    public String[] seen() throws Throwable {
        return (String[]) seen.invoke(null);
    }

    private void close() {
        try {
            target.close();
        } catch (Throwable closedAlready) {
            // the operations may have closed the target
        }
    }

    private String execute(String operation) {
        try {
            return String.valueOf(target.execute(operation.split(" ")))
                .replaceFirst("^\\w+[(\\[](.*)[)\\]]$", "$1");
        } catch (IllegalStateException thrown) {
            if ("Recursive update".equals(thrown.getMessage()))
                markWait();
            return thrown.getClass().getSimpleName();
        } catch (Throwable thrown) {
            return thrown.getClass().getSimpleName();
        }
    }

    /** Marks a wait: in one thread, ConcurrentHashMap reports a recursive update instead of waiting for its own lock. */
    private void markWait() {
        try {
            hasWaited.invoke(null);
        } catch (ReflectiveOperationException never) {
            throw new AssertionError(never);
        }
    }
}
