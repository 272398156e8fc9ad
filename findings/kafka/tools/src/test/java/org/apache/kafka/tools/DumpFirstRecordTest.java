package org.apache.kafka.tools;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.test.TestUtils;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/**
 * Gaps between offsets that a dump reports.
 */
public class DumpFirstRecordTest {
    private final File dir = TestUtils.tempDirectory();

    @AfterEach
    public void tearDown() throws IOException {
        Utils.delete(dir);
    }

    @Test
    public void testSegmentBeginsAtItsBaseOffset() throws IOException {
        assertEquals("", errorsOfDump(2, 3));
    }

    @Test
    public void testGapBetweenRecords() throws IOException {
        String errors = errorsOfDump(2, 4);
        assertTrue(errors.contains("2 is followed by 4"), errors);
    }

    private String errorsOfDump(long... offsets) throws IOException {
        MockTime time = new MockTime();
        try (LogSegment segment = LogSegment.open(dir, offsets[0], new LogConfig(Map.of()), time, 0, false)) {
            for (long offset : offsets) {
                SimpleRecord value = new SimpleRecord(time.milliseconds(), "value".getBytes());
                segment.append(offset, MemoryRecords.withRecords(offset, Compression.NONE, value));
            }
        }
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        System.setOut(new PrintStream(new ByteArrayOutputStream()));
        System.setErr(new PrintStream(errors));
        try {
            DumpLogSegments.main(new String[] {"--deep-iteration", "--files", new File(dir, "00000000000000000002.log").getPath()});
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        return errors.toString();
    }
}
