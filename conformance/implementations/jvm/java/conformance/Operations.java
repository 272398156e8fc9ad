package conformance;

/** The operations of a level by their numbers in scripts: Python gives the names when it connects a driver. */
public final class Operations {
    private final String[] names;
    private final boolean[] replacing;

    /** replacing: true for operations that may replace or remove a file. */
    public Operations(String[] names, boolean[] replacing) {
        this.names = names;
        this.replacing = replacing;
    }

    String name(int number) {
        return names[number];
    }

    boolean mayReplaceFiles(int number) {
        return replacing[number];
    }
}
