package conformance;

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
}
