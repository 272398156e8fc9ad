package conformance;

/** Step that a driver is executing; other threads may read it. */
public final class Running {
    private volatile long count;
    private Thread thread;

    /** Marks the begin of a step in this thread. */
    void begin() {
        thread = Thread.currentThread();
        count++;  // only one thread at a time executes steps of a driver
    }

    /** Marks the end of the step. */
    void end() {
        count++;
    }

    /** Returns a number that identifies the step in progress, or 0. */
    public long step() {
        long seen = count;
        return (seen & 1) == 0 ? 0 : seen;
    }

    /** Returns the stack of the executing thread, one frame per line. */
    public String stack() {
        StringBuilder text = new StringBuilder();
        for (StackTraceElement frame : thread.getStackTrace()) {
            if (frame.getClassName().startsWith("conformance."))
                break;
            text.append(frame).append('\n');
        }
        return text.toString();
    }
}
