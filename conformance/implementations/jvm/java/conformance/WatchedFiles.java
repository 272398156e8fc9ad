package conformance;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * The files that a release works on.
 *
 * <p>All are read after every step. If every file is compared, the directory is listed when its modification time differs
 * from the time that the last listing has set: creating, renaming or deleting a file changes this time.
 */
final class WatchedFiles {
    /** Milliseconds; no clock shows it any more. */
    private static final long LOOKED_AT = 1_000;

    private final Driver driver;
    private final Map<String, WatchedFile> open = new HashMap<>();
    private ByteBuffer content = ByteBuffer.allocateDirect(1 << 14);
    private int most;
    private File directory;
    private boolean doubted;
    /** Those whose names were found at the last look, and no others. */
    private Steps.Content[] named;

    WatchedFiles(Driver driver) {
        this.driver = driver;
    }

    /** Maximum number of files that remain open: opening a file again takes longer than reading it. */
    void keep(int most) {
        this.most = most;
    }

    /** Says that there may be other files of these names by now. */
    void doubt() {
        doubted = true;
    }

    void release() {
        try {
            for (WatchedFile file : open.values())
                file.release();
        } catch (IOException onlyRead) {
            throw new UncheckedIOException(onlyRead);
        }
        open.clear();
        directory = null;
        doubted = true;
    }

    /** Whether there are just these files, of those that are compared, with these contents. */
    boolean hold(ByteBuffer bytes, Steps.Content[] expected) throws IOException {
        if (mayBeOthers() || !isNamedAsBefore(expected)) {
            named = null;
            if (!areThere(expected))
                return false;
            named = expected;
        }
        for (Steps.Content file : expected)
            if (file.length() != Steps.NO_FILE && !holds(bytes, file))
                return false;
        return true;
    }

    /** Whether names may mean other files than at the last look. */
    private boolean mayBeOthers() {
        if (!doubted && !driver.comparesAll())
            return false;
        doubted = false;
        if (driver.comparesAll() && !mayHaveOthers())
            return false;
        for (WatchedFile file : open.values())
            file.doubt();
        return true;
    }

    /** Whether a name has been given or taken away in the directory since the last look. */
    private boolean mayHaveOthers() {
        if (directory == null)
            directory = driver.file("");
        if (directory.lastModified() == LOOKED_AT)
            return false;
        directory.setLastModified(LOOKED_AT);  // before the look; where it cannot be done, each step looks
        return true;
    }

    private boolean isNamedAsBefore(Steps.Content[] expected) {
        if (expected == named)
            return true;
        if (named == null || named.length != expected.length)
            return false;
        for (int i = 0; i < named.length; i++)
            if (!named[i].isNamedAs(expected[i]))
                return false;
        return true;
    }

    /** Whether those that shall not be there are not, and there are as many as expected where all are compared. */
    private boolean areThere(Steps.Content[] expected) throws IOException {
        if (open.size() > expected.length)
            release();
        int there = 0;
        for (Steps.Content file : expected) {
            if (file.length() != Steps.NO_FILE) {
                there++;
                continue;
            }
            WatchedFile before = open.remove(file.name());
            if (before != null)
                before.release();
            if (driver.file(file.name()).exists())
                return false;
        }
        return !driver.comparesAll() || names().length == there;
    }

    private boolean holds(ByteBuffer bytes, Steps.Content expected) throws IOException {
        reserve(expected.length());
        WatchedFile file = open.get(expected.name());
        if (file != null)
            return file.holds(bytes, expected.at(), expected.length(), content);
        file = new WatchedFile(driver.file(expected.name()));
        boolean isKept = open.size() < most;
        if (isKept)
            open.put(expected.name(), file);
        boolean same = file.holds(bytes, expected.at(), expected.length(), content);
        if (!isKept)
            file.release();
        return same;
    }

    /** Ensures that the buffer is longer than that length. */
    private void reserve(int length) {
        if (content.capacity() <= length)
            content = ByteBuffer.allocateDirect(2 * length);
    }

    /** The names of the files that are compared. */
    private String[] names() {
        String[] names = driver.file("").list();
        if (names == null)
            return new String[0];
        int count = 0;
        for (String name : names)
            if (driver.compares(name))
                names[count++] = name;
        return Arrays.copyOf(names, count);
    }

    /** Whether these are the names of all files, sorted. */
    boolean areListed(ByteBuffer expected, int at, int length) {
        String[] names = names();
        Arrays.sort(names);
        byte[] seen = String.join("\0", names).getBytes(StandardCharsets.UTF_8);
        return Arrays.equals(seen, 0, seen.length, expected.array(), at, at + length);
    }

    /** Adds the content of a file to a digest, or that there is no such file. */
    void addTo(Digest digest, String name) throws IOException {
        findAgain();
        WatchedFile file = open.computeIfAbsent(name, given -> new WatchedFile(driver.file(given)));
        int length = file.read(content);
        while (length == content.capacity()) {
            reserve(length);
            length = file.read(content);
        }
        digest.add(length);
        if (length > 0)
            digest.add(content, length);
    }

    private void findAgain() {
        if (doubted)
            for (WatchedFile file : open.values())
                file.doubt();
        doubted = false;
    }

    /** Whether the only expected file has this content, or does not exist. */
    boolean holdsOne(ByteBuffer bytes, Steps.Content expected) throws IOException {
        findAgain();
        return expected.length() == Steps.NO_FILE
            ? !driver.file(expected.name()).exists() : holds(bytes, expected);
    }

    /** Gives a file another content, or removes it. The file is reused: creating one takes longer than most work on it. */
    void write(String name, ByteBuffer bytes, int at, int length) throws IOException {
        File file = driver.file(name);
        if (length == Steps.NO_FILE) {
            if (file.delete())
                doubt();
            return;
        }
        try (RandomAccessFile open = new RandomAccessFile(file, "rw")) {
            FileChannel channel = open.getChannel();
            channel.truncate(length);
            if (length > 0)
                channel.write(bytes.slice(at, length), 0);
        }
    }
}
