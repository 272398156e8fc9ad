package conformance;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Base class of drivers that execute one operation per call, and return its outcome and the state as a {@link Reply}.
 *
 * Exported JUnit tests have a class of this name, with the same members that drivers use:
 * conformance/runs/reproducers/templates/TraceTest.java.
 */
abstract class ReplyingDriver implements Driver {
    final ClassLoader loader;
    final Reply reply;
    String directory = "";
    private final Operations operations;
    private final Running running = new Running();
    private boolean withState = true;

    ReplyingDriver(ClassLoader loader, Map<String, Integer> kinds, ByteBuffer buffer, Operations operations) {
        this.loader = loader;
        this.operations = operations;
        reply = new Reply(buffer, kinds);
    }

    /** Returns the operation that is being executed. */
    public final Running running() {
        return running;
    }

    /** Returns the message of the exception that the last operation threw, or null. */
    public final String text() {
        return reply.text();
    }

    @Override
    public void begin(String directory) {
        abandon();
        this.directory = directory;
        reply.inside(directory);
    }

    @Override
    public File file(String path) {
        return path.isEmpty() ? new File(directory) : new File(directory, path);
    }

    @Override
    public final boolean replied(ByteBuffer expected, int at, int length) {
        return reply.is(expected, at, length);
    }

    @Override
    public final void addReply(Digest digest, int operation) {
        reply.addTo(digest, operation);
    }

    @Override
    public final Operations operations() {
        return operations;
    }

    @Override
    public final void ask(String operation, long[] arguments, byte[] bytes) {
        withState = false;
        execute(operation, arguments, bytes);
        withState = true;
    }

    /** Finishes the background work of an operation; returns true if there is a state. */
    abstract boolean settle() throws Throwable;

    /** Adds the state to the reply. */
    abstract void addState() throws Throwable;

    interface Step {
        void run() throws Throwable;
    }

    final void run(Step step) {
        running.begin();
        try {
            reply.begin();
            try {
                step.run();
                reply.endValue();
            } catch (Throwable thrown) {
                reply.failed(thrown);
            }
            try {
                if (settle() && withState) {
                    int mark = reply.mark();
                    addState();
                    reply.endState(mark);
                }
            } catch (Throwable thrown) {
                reply.failed(thrown);
            }
        } finally {
            running.end();
        }
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
