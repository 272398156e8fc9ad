package org.apache.kafka.storage.internals.log;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * @title@: Kafka @release@.
 *
 * One thread executes an operation of Kafka's own class. It stops at a point before an access to a field, a buffer or a
 * file, and another thread executes the other operations. A result that no order of whole operations has fails the test.
 * The recorded point is tried first, then all others, so the test also runs with other releases. Where one thread has to
 * wait for a lock of the other, no result is compared.
 *
 * The class loader below inserts the points into Kafka's classes, so the test requires org.ow2.asm:asm-tree.
 */
public class @name@ {
    static {
        // The threads execute the tasks of the caching library.
        System.setProperty("java.util.concurrent.ForkJoinPool.common.parallelism", "0");
    }

    private static final String[] SETUP = {@setup@};
    private static final String FIRST = @first@;
    private static final String[] OTHERS = {@others@};
    /** Number of the point, @where@. */
    private static final int STOP = @stop@;
    /** Number of the point at which the other thread lets the first one continue; negative for its end. */
    private static final int BACK = @back@;

    @TempDir
    File directory;

    private Interruptions interruptions;
    private List<String> orders;

    @BeforeEach
    public void setUp() throws Throwable {
        ClassLoader loader = new Interrupting(getClass().getClassLoader());
        Map<String, byte[]> batches = new HashMap<>();
@batches@
        interruptions = new Interruptions(loader, directory, @target@, batches);
        orders = new ArrayList<>();
        for (String[] order : interruptions.orders(SETUP, FIRST, OTHERS))
            orders.add(String.join(" | ", order));
    }

    /** Passes with every release: without an interruption, the second thread runs after the first one. */
    @Test
    public void sequential() throws Throwable {
        interrupt(-1, -1);
    }

    @Test
    public void interleaving() throws Throwable {
        interrupt(STOP, BACK);
        int stop = 0;
        while (interrupt(stop, -1))
            stop++;
    }

    /** Stops the first thread at a point, and compares the result; false if the operation has no such point. */
    private boolean interrupt(int stop, int back) throws Throwable {
        String[] seen = interruptions.run(SETUP, FIRST, OTHERS, stop, true, back);
        String where = seen[Interruptions.WHERE];
        String result = String.join(" | ", Arrays.asList(seen).subList(Interruptions.OWN, seen.length));
        boolean waited = Boolean.parseBoolean(seen[Interruptions.WAITED]);
        assertTrue(waited || orders.contains(result), () -> FIRST + ", interrupted before " + where + " by "
            + String.join("; ", OTHERS) + "\n  result    " + result + "\n  in order  " + String.join("\n  in order  ", orders));
        return !where.isEmpty();
    }

    /** Loader of Kafka's classes; those whose path matches CHANGED get points at which a thread can stop. */
    private static final class Interrupting extends ClassLoader {
        private static final Pattern KAFKAS = Pattern.compile("(org\\.apache\\.)?kafka\\..*");
        private static final Pattern CHANGED = Pattern.compile(@changed@);

        Interrupting(ClassLoader parent) {
            super(parent);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!KAFKAS.matcher(name).matches() || name.startsWith(@name@.class.getName()))
                return super.loadClass(name, resolve);
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded != null ? loaded : define(name);
            }
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            String path = name.replace('.', '/') + ".class";
            try (InputStream file = getParent().getResourceAsStream(path)) {
                if (file == null)
                    throw new ClassNotFoundException(name);
                byte[] bytes = file.readAllBytes();
                byte[] changed = CHANGED.matcher(path).matches() ? Interruptible.of(bytes) : bytes;
                return defineClass(name, changed, 0, changed.length);
            } catch (IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }

@classes@
}
