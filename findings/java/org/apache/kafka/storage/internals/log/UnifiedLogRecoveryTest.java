package org.apache.kafka.storage.internals.log;

import findings.TestLog;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** What a log is after a crash. */
public class UnifiedLogRecoveryTest {
    private static final long T = 1_700_000_000_000L;

    @TempDir
    File parent;
    private File dir;

    @BeforeEach
    public void setUp() {
        dir = new File(parent, "t-0");
        assertTrue(dir.mkdir());
    }

    @Test
    public void testSegmentRolledForFullTimeIndexIsRecovered() throws Throwable {
        // Room for three time entries. The first batch of a segment and the first one after a restart get none, but
        // recovery has one for all batches except the first.
        Map<String, String> config = Map.of("index.interval.bytes", "1", "segment.index.bytes", "48");
        try (TestLog log = TestLog.open(dir, config)) {
            for (int i = 0; i < 3; i++)
                log.append(T + i);
        }
        TestLog log = TestLog.open(dir, config);
        for (int i = 3; i < 6; i++)
            log.append(T + i);
        assertEquals(List.of(0L, 5L), log.baseOffsets(), "the sixth batch rolls the segment");
        log.kill();
        TestLog recovered = assertDoesNotThrow(() -> TestLog.recover(dir, config), "the broker does not start");
        assertEquals(6, recovered.logEndOffset());
        recovered.close();
    }

    @Test
    public void testRecoveryLeavesNoHole() throws Throwable {
        Map<String, String> config = Map.of("index.interval.bytes", "1");
        TestLog log = TestLog.open(dir, config);
        log.append(T);      // offset 0
        long intact = Files.size(dir.toPath().resolve("00000000000000000000.log"));
        log.append(T + 1);  // offset 1
        log.roll();
        log.append(T + 2);  // offset 2
        log.kill();
        // Power fails: the last batch of the first segment, which was not synced, is lost, but not the second segment.
        Path first = dir.toPath().resolve("00000000000000000000.log");
        try (FileChannel channel = FileChannel.open(first, StandardOpenOption.WRITE)) {
            channel.truncate(intact);
        }
        try (TestLog recovered = TestLog.recover(dir, config)) {
            assertEquals(List.of(0L), recovered.baseOffsets(), "offset 1 is gone: the log has to end before it");
            assertEquals(1, recovered.logEndOffset());
        }
    }

    @Test
    public void testUnfinishedRollDoesNotPreventStart() throws Throwable {
        Map<String, String> config = Map.of("index.interval.bytes", "1");
        TestLog log = TestLog.open(dir, config);
        log.append(T);      // offset 0
        Path first = dir.toPath().resolve("00000000000000000000.log");
        long intact = Files.size(first);
        log.append(T + 1);  // offset 1
        log.roll();
        log.append(T + 2);  // offset 2
        log.kill();
        // Power fails: the last batch of the first segment is zeros, and of the second segment only the log is there.
        try (FileChannel channel = FileChannel.open(first, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.allocate((int) (Files.size(first) - intact)), intact);
        }
        for (String suffix : List.of(".index", ".timeindex", ".snapshot"))
            Files.deleteIfExists(dir.toPath().resolve("00000000000000000002" + suffix));
        TestLog recovered = assertDoesNotThrow(() -> TestLog.recover(dir, config), "the broker does not start");
        assertEquals(1, recovered.logEndOffset(), "what is whole is there");
        recovered.close();
    }
}
