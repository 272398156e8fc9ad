package conformance;

/** A counter that is wrong when it is interrupted: what a check of interruptions has to find before it is believed. */
public final class Racy {
    private int value;

    public void add(int more) {
        value = value + more;
    }

    public int value() {
        return value;
    }
}
