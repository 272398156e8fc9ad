package conformance;

import java.util.function.Supplier;
import java.util.stream.IntStream;

/** Places of instrumented classes that have been reached since the last {@link #clear}. */
public final class Reach {
    private static boolean[] reached = {};

    private Reach() {}

    /** Marks a place; instrumented classes call it. */
    public static void at(int place) {
        reached[place] = true;
    }

    static void clear(int places) {
        reached = new boolean[places];
    }

    static boolean has(int place) {
        return reached[place];
    }

    /** Returns a function that returns the reached places, and clears them. */
    public static Supplier<int[]> taker(int places) {
        clear(places);
        return () -> {
            boolean[] before = reached;
            clear(places);
            return IntStream.range(0, places).filter(place -> before[place]).toArray();
        };
    }
}
