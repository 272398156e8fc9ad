package org.apache.kafka.tools;

import findings.TestLog;

import com.sun.management.ThreadMXBean;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** What kafka-dump-log.sh says of sound files, and at what cost. */
public class DumpLogSegmentsSoundTest {
    private static final long T = 1_700_000_000_000L;

    @TempDir
    File parent;

    @Test
    public void testNoGapIsReportedBeforeFirstRecord() throws Throwable {
        File dir = new File(parent, "t-0");
        assertTrue(dir.mkdir());
        try (TestLog log = TestLog.open(dir, Map.of())) {
            log.append(T);      // offset 0
            log.append(T + 1);  // offset 1
            log.roll();
            log.append(T + 2);  // offset 2
            log.append(T + 3);  // offset 3
        }
        assertEquals("", errorsOf(new File(dir, "00000000000000000000.log")));
        assertEquals("", errorsOf(new File(dir, "00000000000000000002.log")));
    }

    @Test
    public void testWorkGrowsWithEntriesOfTimeIndex() throws Throwable {
        dumpedBytes("warm-0", 100);
        long half = dumpedBytes("half-0", 200);
        long whole = dumpedBytes("whole-0", 400);
        assertTrue(whole < 3 * half, "twice the entries need " + (double) whole / half + " times the memory");
    }

    /** The bytes that dumping a time index with a number of entries allocates. */
    private long dumpedBytes(String name, int entries) throws Throwable {
        File dir = new File(parent, name);
        assertTrue(dir.mkdir());
        try (TestLog log = TestLog.open(dir, Map.of("index.interval.bytes", "1"))) {
            for (int i = 0; i <= entries; i++)
                log.append(T + i);
        }
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
        assertEquals("", errorsOf(new File(dir, "00000000000000000000.timeindex")));
        return threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
    }

    private static String errorsOf(File segment) throws Throwable {
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        System.setOut(new PrintStream(new ByteArrayOutputStream()));
        System.setErr(new PrintStream(errors));
        try {
            String[] arguments = {"--deep-iteration", "--files", segment.getPath()};
            tool().getMethod("main", String[].class).invoke(null, (Object) arguments);
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        return errors.toString();
    }

    /** It was in kafka.tools up to 4.2. */
    private static Class<?> tool() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.tools.DumpLogSegments");
        } catch (ClassNotFoundException upTo42) {
            return Class.forName("kafka.tools.DumpLogSegments");
        }
    }
}
