package conformance;

/** Counter with a planted race. The search for races must find this one, or its other results are not trusted. */
public final class Racy {
    private int value;

    public void add(int more) {
        value = value + more;
    }

    public int value() {
        return value;
    }
}
