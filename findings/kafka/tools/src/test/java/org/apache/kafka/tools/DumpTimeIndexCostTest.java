package org.apache.kafka.tools;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.test.TestUtils;

import com.sun.management.ThreadMXBean;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertTrue;

/**
 * Memory that the dump of a time index allocates. It stands for its work: every batch that is read is allocated.
 */
public class DumpTimeIndexCostTest {
    private final File parentDir = TestUtils.tempDirectory();

    @AfterEach
    public void tearDown() throws IOException {
        Utils.delete(parentDir);
    }

    @Test
    public void testCostIsProportionalToEntries() throws IOException {
        allocatedByDump("warm-up", 100);
        long half = allocatedByDump("half", 200);
        long whole = allocatedByDump("whole", 400);
        assertTrue(whole < 3 * half, "twice the entries need " + (double) whole / half + " times the memory");
    }

    private long allocatedByDump(String name, int entries) throws IOException {
        File dir = new File(parentDir, name);
        assertTrue(dir.mkdir());
        LogConfig config = new LogConfig(Map.of(TopicConfig.INDEX_INTERVAL_BYTES_CONFIG, "1"));
        MockTime time = new MockTime();
        try (LogSegment segment = LogSegment.open(dir, 0, config, time, 0, false)) {
            for (int offset = 0; offset <= entries; offset++) {
                SimpleRecord value = new SimpleRecord(time.milliseconds() + offset, "value".getBytes());
                segment.append(offset, MemoryRecords.withRecords(offset, Compression.NONE, value));
            }
            segment.onBecomeInactiveSegment();
        }
        File timeIndex = new File(dir, "00000000000000000000.timeindex");
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadAllocatedBytes();
        DumpLogSegments.dumpTimeIndex(timeIndex, false, true, new DumpLogSegments.TimeIndexDumpErrors());
        return threads.getCurrentThreadAllocatedBytes() - before;
    }
}
