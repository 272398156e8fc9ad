package org.apache.fluss.server.log;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.io.IOException;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Test for {@link AbstractIndex} after a failed resize, and after the mapping was released. */
class AbstractIndexTest {

    // The operating system rejects a negative length with an IOException, as it rejects a length for
    // which a full disk has no space.
    private static final int REJECTED_SIZE = -24;

    private @TempDir File tempDir;
    private OffsetIndex offsetIndex;
    private TimeIndex timeIndex;

    @BeforeEach
    void setUp() throws IOException {
        offsetIndex = new OffsetIndex(new File(tempDir, "00000000000000000000.index"), 0L, 80);
        offsetIndex.append(10L, 100);
        timeIndex = new TimeIndex(new File(tempDir, "00000000000000000000.timeindex"), 0L, 120);
        timeIndex.maybeAppend(1000L, 10L);
    }

    @Test
    void testLookupOfOffsetAfterFailedResize() {
        assertThatThrownBy(() -> offsetIndex.resize(REJECTED_SIZE)).isInstanceOf(IOException.class);

        assertThatCode(
                        () ->
                                assertThat(offsetIndex.lookup(10L))
                                        .isEqualTo(new OffsetPosition(10L, 100)))
                .as("a lookup after a failed resize")
                .doesNotThrowAnyException();
    }

    @Test
    void testAppendOfOffsetAfterFailedResize() throws IOException {
        assertThatThrownBy(() -> offsetIndex.resize(REJECTED_SIZE)).isInstanceOf(IOException.class);

        assertThatCode(() -> offsetIndex.append(20L, 200))
                .as("an append after a failed resize")
                .doesNotThrowAnyException();
        offsetIndex.close();
        OffsetIndex reopened = new OffsetIndex(offsetIndex.file(), 0L, 80);
        assertThat(reopened.entry(0)).isEqualTo(new OffsetPosition(10L, 100));
        assertThat(reopened.entry(1)).isEqualTo(new OffsetPosition(20L, 200));
        assertThat(reopened.entries()).isEqualTo(2);
    }

    @Test
    void testLookupOfTimestampAfterFailedResize() {
        assertThatThrownBy(() -> timeIndex.resize(REJECTED_SIZE)).isInstanceOf(IOException.class);

        assertThatCode(
                        () ->
                                assertThat(timeIndex.lookup(1000L))
                                        .isEqualTo(new TimestampOffset(1000L, 10L)))
                .as("a lookup after a failed resize")
                .doesNotThrowAnyException();
    }

    @Test
    void testTrimAfterDeletion() throws IOException {
        for (AbstractIndex index : new AbstractIndex[] {offsetIndex, timeIndex}) {
            index.deleteIfExists();
            assertThatCode(index::trimToValidSize)
                    .as("trimToValidSize() of a deleted index")
                    .doesNotThrowAnyException();
            assertThat(index.file()).doesNotExist();
        }
    }

    @Test
    void testCloseAfterDeletion() throws IOException {
        for (AbstractIndex index : new AbstractIndex[] {offsetIndex, timeIndex}) {
            index.deleteIfExists();
            assertThatCode(index::close)
                    .as("close() of a deleted index")
                    .doesNotThrowAnyException();
            assertThat(index.file()).doesNotExist();
        }
    }
}
