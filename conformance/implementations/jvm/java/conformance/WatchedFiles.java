package conformance;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The files that a release works on. */
final class WatchedFiles {
    private final Driver driver;
    private final Map<String, WatchedFile> open = new HashMap<>();
    private ByteBuffer content = ByteBuffer.allocateDirect(1 << 14);
    private int most;

    WatchedFiles(Driver driver) {
        this.driver = driver;
    }

    /** So many stay open for the next look: opening a file again takes longer than reading it. */
    void keep(int most) {
        this.most = most;
    }

    /** Says that there may be other files of these names by now. */
    void doubt() {
        for (WatchedFile file : open.values())
            file.doubt();
    }

    void release() {
        try {
            for (WatchedFile file : open.values())
                file.release();
        } catch (IOException onlyRead) {
            throw new UncheckedIOException(onlyRead);
        }
        open.clear();
    }

    /** Whether there are just these files, of those that are compared, with these contents. */
    boolean hold(ByteBuffer bytes, Script.Content[] expected) throws IOException {
        if (open.size() > expected.length)
            release();
        int there = 0;
        for (Script.Content file : expected) {
            if (file.length() == Script.NO_FILE) {
                WatchedFile before = open.remove(file.name());
                if (before != null)
                    before.release();
                if (driver.file(file.name()).exists())
                    return false;
            } else {
                there++;
                if (!holds(bytes, file))
                    return false;
            }
        }
        return !driver.comparesAll() || names().length == there;
    }

    private boolean holds(ByteBuffer bytes, Script.Content expected) throws IOException {
        if (content.capacity() <= expected.length())
            content = ByteBuffer.allocateDirect(2 * expected.length());
        WatchedFile file = open.get(expected.name());
        if (file == null) {
            file = new WatchedFile(driver.file(expected.name()));
            if (open.size() < most)
                open.put(expected.name(), file);
        }
        boolean same = file.holds(bytes, expected.at(), expected.length(), content);
        if (!open.containsKey(expected.name()))
            file.release();
        return same;
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

    /** Gives a file another content, or removes it. */
    void overwrite(String name, ByteBuffer expected, int at, int length) throws IOException {
        File file = driver.file(name);
        if (length == Script.NO_FILE) {
            Files.deleteIfExists(file.toPath());
        } else {
            byte[] bytes = new byte[length];
            expected.get(at, bytes);
            Files.write(file.toPath(), bytes);
        }
        doubt();
    }
}
