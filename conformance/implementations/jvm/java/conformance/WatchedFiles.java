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
 * Files that a release writes.
 *
 * <p>All are read after every step. If every file is compared, the directory is listed when a file has been created, renamed
 * or deleted: this changes the directory's modification time, which each listing sets to a fixed value.
 */
final class WatchedFiles {
    /** Fixed modification time in milliseconds, far in the past. */
    private static final long LISTED_AT = 1_000;

    private final Driver driver;
    private final Map<String, WatchedFile> open = new HashMap<>();
    private ByteBuffer content = ByteBuffer.allocateDirect(1 << 14);
    private int most;
    private File directory;
    private boolean mayBeReplaced;
    /** Files that the last listing found. */
    private Steps.Content[] named;

    WatchedFiles(Driver driver) {
        this.driver = driver;
    }

    /** Maximum number of files that remain open: opening a file again takes longer than reading it. */
    void keep(int most) {
        this.most = most;
    }

    /** Marks all open files as possibly replaced or removed. */
    void markReplaced() {
        mayBeReplaced = true;
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
        mayBeReplaced = true;
    }

    /** Returns true if exactly these files exist, among the compared ones, with these contents. */
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

    /** Returns true if a file may have been replaced since the last listing. */
    private boolean mayBeOthers() {
        if (!mayBeReplaced && !driver.comparesAll())
            return false;
        mayBeReplaced = false;
        if (driver.comparesAll() && !mayHaveOthers())
            return false;
        for (WatchedFile file : open.values())
            file.markReplaced();
        return true;
    }

    /** Returns true if a name was added to the directory or removed since the last listing. */
    private boolean mayHaveOthers() {
        if (directory == null)
            directory = driver.file("");
        if (directory.lastModified() == LISTED_AT)
            return false;
        directory.setLastModified(LISTED_AT);  // before the listing; if the time cannot be set, each step lists the directory
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

    /** Returns true if no file exists that must not, and, if all files are compared, the number of files is as expected. */
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

    /** Ensures that the buffer is longer than a length. */
    private void reserve(int length) {
        if (content.capacity() <= length)
            content = ByteBuffer.allocateDirect(2 * length);
    }

    /** Returns the names of the compared files. */
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

    /** Returns true if these are the sorted names of all files. */
    boolean areListed(ByteBuffer expected, int at, int length) {
        String[] names = names();
        Arrays.sort(names);
        byte[] seen = String.join("\0", names).getBytes(StandardCharsets.UTF_8);
        return Arrays.equals(seen, 0, seen.length, expected.array(), at, at + length);
    }

    /** Adds the content of a file to a digest; a missing file has a length of -1. */
    void addTo(Digest digest, String name) throws IOException {
        checkReplaced();
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

    private void checkReplaced() {
        if (mayBeReplaced)
            for (WatchedFile file : open.values())
                file.markReplaced();
        mayBeReplaced = false;
    }

    /** Returns true if the only expected file has this content, or does not exist as expected. */
    boolean holdsOne(ByteBuffer bytes, Steps.Content expected) throws IOException {
        checkReplaced();
        return expected.length() == Steps.NO_FILE
            ? !driver.file(expected.name()).exists() : holds(bytes, expected);
    }

    /** Replaces the content of a file, or removes the file. The file is reused, because creating one takes longer. */
    void write(String name, ByteBuffer bytes, int at, int length) throws IOException {
        File file = driver.file(name);
        if (length == Steps.NO_FILE) {
            if (file.delete())
                markReplaced();
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
