package org.apache.kafka.storage.internals.log;

import java.io.IOException;

/** UnifiedLog.maybeIncrementFirstUnstableOffset: the offset stays the one that was asked for. */
public final class ExactOffset {
    private ExactOffset() { }

    public static LogOffsetMetadata convert(UnifiedLog log, long offset) throws IOException {
        LogOffsetMetadata found = log.maybeConvertToOffsetMetadata(offset);
        return found.messageOffsetOnly() ? found
            : new LogOffsetMetadata(offset, found.segmentBaseOffset, found.relativePositionInSegment);
    }
}
