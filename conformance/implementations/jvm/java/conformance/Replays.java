package conformance;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Recorded examples: batches of steps with the expected replies and files, which a driver executes until the first
 * difference, without Python and without the reference.
 *
 * <pre>
 *   file:    number of examples, examples
 *   example: number of batches, batches
 *   batch:   number of steps, length, bytes (as Script reads them)
 * </pre>
 */
public final class Replays {
    private static final int OPEN_FILES = 64;
    private final List<Script[]> examples = new ArrayList<>();
    private final List<int[]> steps = new ArrayList<>();
    private volatile int executing;

    public Replays(String file) throws IOException {
        try (DataInputStream bytes = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(file))))) {
            int count = bytes.readInt();
            for (int i = 0; i < count; i++) {
                Script[] scripts = new Script[bytes.readInt()];
                int[] counts = new int[scripts.length];
                for (int at = 0; at < scripts.length; at++) {
                    counts[at] = bytes.readInt();
                    scripts[at] = new Script(bytes.readNBytes(bytes.readInt()), 1);
                }
                examples.add(scripts);
                steps.add(counts);
            }
        }
    }

    /** Returns the example in progress; any thread may call it. */
    public int executing() {
        return executing;
    }

    /**
     * Executes examples with a driver until one differs; returns its number and the number of the first differing step
     * (from 0), or nothing. root: a directory for the examples; directory: its subdirectory that the driver uses.
     */
    public int[] firstDifference(Object driver, String root, String directory, int[] chosen) throws IOException {
        BatchExecutor executor = new BatchExecutor((Driver) driver, 0);
        for (int number : chosen) {
            int step = differingStep((Driver) driver, executor, root, directory, number);
            if (step >= 0)
                return new int[] {number, step};
        }
        return new int[0];
    }

    /** Executes examples that must not differ; returns for each the places that it reached, after their number. */
    public int[] reached(Object driver, String root, String directory, int[] chosen, int places) throws IOException {
        BatchExecutor executor = new BatchExecutor((Driver) driver, 0);
        List<Integer> found = new ArrayList<>();
        for (int number : chosen) {
            Reach.clear(places);
            boolean differs = differingStep((Driver) driver, executor, root, directory, number) >= 0;
            int head = found.size();
            found.add(0);
            for (int place = 0; place < places; place++)
                if (Reach.has(place))
                    found.add(place);
            found.set(head, differs ? -1 - (found.size() - head - 1) : found.size() - head - 1);
        }
        return found.stream().mapToInt(Integer::intValue).toArray();
    }

    private int differingStep(Driver driver, BatchExecutor executor, String root, String directory, int number)
            throws IOException {
        executing = number;
        clear(new File(root));
        new File(directory).mkdirs();
        driver.begin(directory);
        executor.begin(OPEN_FILES);
        int before = 0;
        try {
            Script[] scripts = examples.get(number);
            for (int at = 0; at < scripts.length; at++) {
                executor.take(scripts[at], steps.get(number)[at]);
                executor.executeRest();
                if (executor.hasStopped())
                    return before + executor.stoppedAt();
                before += steps.get(number)[at];
            }
            return -1;
        } finally {
            driver.abandon();
        }
    }

    /** Removes what is in a directory. */
    private static void clear(File directory) {
        File[] left = directory.listFiles();
        for (int i = 0; left != null && i < left.length; i++) {
            if (left[i].isDirectory())
                clear(left[i]);
            left[i].delete();
        }
    }
}
