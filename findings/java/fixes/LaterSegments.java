package org.apache.kafka.storage.internals.log;

import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;

import java.io.IOException;
import java.util.Optional;

/** UnifiedLog.searchOffsetInLocalLog: a segment without an answer is not the end of the search. */
public final class LaterSegments {
    private LaterSegments() { }

    public static Optional<TimestampAndOffset> search(UnifiedLog log, long timestamp, long startOffset)
            throws IOException {
        for (LogSegment segment : log.logSegments()) {
            if (segment.largestTimestamp() < timestamp)
                continue;
            Optional<TimestampAndOffset> found =
                segment.findOffsetByTimestamp(timestamp, startOffset, log.config().maxDecompressedMessageBytes());
            if (found.isPresent())
                return found;
        }
        return Optional.empty();
    }
}
