package org.apache.kafka.storage.internals.log;

import java.io.IOException;

/** LogSegment.append and recover: an index is sparse, so a full one needs no further entry. */
public final class FullIndex {
    private FullIndex() { }

    public static void append(OffsetIndex index, long offset, int position) {
        if (!index.isFull())
            index.append(offset, position);
    }

    public static void maybeAppend(TimeIndex index, long timestamp, long offset) throws IOException {
        if (!index.isFull())
            index.maybeAppend(timestamp, offset);
    }

    public static void maybeAppend(TimeIndex index, long timestamp, long offset, boolean last) throws IOException {
        index.maybeAppend(timestamp, offset, last);
    }
}
