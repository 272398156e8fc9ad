package org.apache.kafka.storage.internals.log;

import java.lang.reflect.InvocationTargetException;

/** LogLoader.recoverLog: where nothing is compacted, a segment that does not begin where the last one ends is cut off. */
public final class Hole {
    private Hole() { }

    public static int recoverSegment(LogLoader loader, LogSegment segment) throws Throwable {
        var recover = LogLoader.class.getDeclaredMethod("recoverSegment", LogSegment.class);
        recover.setAccessible(true);
        int truncated;
        try {
            truncated = (Integer) recover.invoke(loader, segment);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
        var next = ((LogSegments) field(loader, "segments")).higherSegment(segment.baseOffset());
        boolean hole = next.isPresent() && next.get().baseOffset() != segment.readNextOffset();
        return hole && !((LogConfig) field(loader, "config")).compact ? Math.max(truncated, 1) : truncated;
    }

    private static Object field(LogLoader loader, String name) throws ReflectiveOperationException {
        var field = LogLoader.class.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(loader);
    }
}
