package conformance;

/** A driver whose replies can leave the state out: reading it takes longer than most questions. */
public interface AskedDriver extends Driver {
    /** Performs an operation that changes nothing; its outcome alone is the reply. */
    void ask(String operation, long[] arguments, byte[] bytes);
}
