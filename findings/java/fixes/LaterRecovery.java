package org.apache.kafka.storage.internals.log;

import java.lang.reflect.InvocationTargetException;

/** LogLoader.loadSegmentFiles: a segment that recoverLog recovers anyway is not recovered before those in front of it. */
public final class LaterRecovery {
    private LaterRecovery() { }

    public static int recoverSegment(LogLoader loader, LogSegment segment) throws Throwable {
        boolean clean = (Boolean) field(loader, "hadCleanShutdown");
        if (!clean && segment.baseOffset() >= (Long) field(loader, "recoveryPointCheckpoint"))
            return 0;
        var recover = LogLoader.class.getDeclaredMethod("recoverSegment", LogSegment.class);
        recover.setAccessible(true);
        try {
            return (Integer) recover.invoke(loader, segment);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    private static Object field(LogLoader loader, String name) throws ReflectiveOperationException {
        var field = LogLoader.class.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(loader);
    }
}
