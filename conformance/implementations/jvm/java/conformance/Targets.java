package conformance;

import java.io.File;
import java.util.HashMap;
import java.util.Map;

/** The targets of interruptions, by their kinds. A Java test of an interleaving has a copy of the expression of its kind. */
public final class Targets {
    private Targets() {}

    /** Returns the executor of operations on a new target of a kind. */
    public static Interruptions interruptions(ClassLoader loader, String directory, String kind) throws Throwable {
        Map<String, byte[]> batches = new HashMap<>();
        return new Interruptions(loader, new File(directory), target(loader, kind, batches), batches);
    }

    private static Target target(ClassLoader loader, String kind, Map<String, byte[]> batches) throws Throwable {
        return switch (kind) {
            case "offset" -> new TargetIndex(loader, "Offset", false);
            case "time" -> new TargetIndex(loader, "Time", false);
            case "lazy" -> new TargetIndex(loader, "Offset", true);
            case "segment", "opened" -> new TargetSegment(loader, batches);
            case "cache", "removed" -> new TargetCache(loader, false);
            case "full" -> new TargetCache(loader, true);
            case "log", "replicated" -> new TargetLog(loader, batches);
            default -> new TargetCounter(loader);
        };
    }
}
