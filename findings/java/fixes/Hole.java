package org.apache.kafka.storage.internals.log;

import java.io.IOException;

/** LogLoader.recoverLog: where nothing is compacted, a segment that does not begin where the last one ends is cut off. */
public final class Hole {
    private Hole() { }

    public static int recoverSegment(LogLoader loader, LogSegment segment) throws Exception {
        var recover = LogLoader.class.getDeclaredMethod("recoverSegment", LogSegment.class);
        recover.setAccessible(true);
        int truncated = (Integer) recover.invoke(loader, segment);
        var field = LogLoader.class.getDeclaredField("segments");
        field.setAccessible(true);
        var next = ((LogSegments) field.get(loader)).higherSegment(segment.baseOffset());
        boolean hole = next.isPresent() && next.get().baseOffset() != segment.readNextOffset();
        return hole ? Math.max(truncated, 1) : truncated;
    }
}
