package conformance;

/** Names of a machine's operations, by their numbers in batches; Python passes the names when it creates a driver. */
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
