package conformance;

/** A counter that is wrong when it is interrupted: a check of interruptions has to find it first. */
public final class Racy {
    private int value;

    public void add(int more) {
        value = value + more;
    }

    public int value() {
        return value;
    }
}
