package conformance;

/** Which step a driver performs, for another thread to look at while it does. */
public final class Running {
    private volatile long count;
    private Thread thread;

    /** A step begins, in this thread. */
    void begin() {
        thread = Thread.currentThread();
        count++;  // only one thread at a time performs steps of a driver
    }

    /** It has ended. */
    void end() {
        count++;
    }

    /** A number of the step in progress, another one for each; 0 if there is none. */
    public long step() {
        long seen = count;
        return (seen & 1) == 0 ? 0 : seen;
    }

    /** Where the thread that performs it is, a frame a line. */
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
