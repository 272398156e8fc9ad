package conformance;

import java.util.ArrayList;
import java.util.List;

/**
 * The classes of many releases, which execute the steps of a batch while Python prepares the next one: a {@link Helper}
 * may begin with them, and {@link #finish} executes the rest.
 */
public final class Followers {
    /** More than most logs of an example have. */
    private static final int MANY = 64;

    private final int rules;
    private final int openFiles;
    private final List<Follower> followers = new ArrayList<>();
    private Helper.Round round;

    /** rules: the number of sets of rules. openFiles: the maximum number of open files of all releases together. */
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
     * Begins a script; the preceding script has to be finished. alone: no other thread has work until this script ends.
     */
    public void start(byte[] bytes, int steps, boolean alone) {
        Script script = new Script(bytes, rules);
        for (Follower follower : followers)
            follower.take(script, steps);
        round = Helper.post(followers.size(), !alone || followers.size() > 1, number -> followers.get(number).follow());
    }

    /** Waits until every release has executed the batch or stopped. Returns the number of stopped ones. */
    public int finish() {
        round.finish();
        return (int) followers.stream().filter(Follower::hasStopped).count();
    }

    /** Returns the step of the last batch that a member is executing; any thread may call it. */
    public int executing(int number) {
        return followers.get(number).executing();
    }

    /** Returns the step of the last batch after which a member has stopped, or -1. */
    public int stoppedAt(int number) {
        return followers.get(number).stoppedAt();
    }

    public void resume(int number) {
        followers.get(number).resume();
    }
}
