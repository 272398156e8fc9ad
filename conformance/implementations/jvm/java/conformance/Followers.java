package conformance;

import java.util.ArrayList;
import java.util.List;

/**
 * The classes of many releases, which perform the steps of a script while Python makes the next one: a {@link Helper}
 * may begin with them, and {@link #finish} does what is left.
 */
public final class Followers {
    /** More than most logs of an example have. */
    private static final int MANY = 64;

    private final int rules;
    private final int openFiles;
    private final List<Follower> followers = new ArrayList<>();
    private Helper.Round round;

    /** rules: how many sets of rules the scripts speak of. openFiles: so many may stay open, of all releases together. */
    public Followers(int rules, int openFiles) {
        this.rules = rules;
        this.openFiles = openFiles;
    }

    public void add(Object driver, int rules) {
        followers.add(new Follower((Driver) driver, rules));
    }

    public void begin() {
        int each = Math.min(MANY, openFiles / Math.max(1, followers.size()));
        followers.forEach(follower -> follower.begin(each));
    }

    /**
     * Begins a script; the one before has to be finished. alone: no other thread has work until this script ends.
     */
    public void start(byte[] bytes, int steps, boolean alone) {
        Script script = new Script(bytes, rules);
        for (Follower follower : followers)
            follower.take(script, steps);
        round = Helper.post(followers.size(), !alone || followers.size() > 1, number -> followers.get(number).follow());
    }

    /** Waits until every release has performed the script or stopped. Returns how many have stopped. */
    public int finish() {
        round.finish();
        return (int) followers.stream().filter(Follower::hasStopped).count();
    }

    /** The step of the last script that a follower performs right now; any thread may ask. */
    public int performing(int number) {
        return followers.get(number).performing();
    }

    /** The step of the last script behind which a follower has stopped; -1 if it has not. */
    public int stoppedAt(int number) {
        return followers.get(number).stoppedAt();
    }

    public void resume(int number) {
        followers.get(number).resume();
    }
}
