package conformance;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;

/** File that a release writes; it is read from the disk after every step. */
final class WatchedFile {
    private final Path path;
    private FileChannel channel;
    private Object identity;
    private boolean certain;

    WatchedFile(File file) {
        path = file.toPath();
    }

    /** Marks the open file as possibly replaced or removed. */
    void markReplaced() {
        certain = false;
    }

    /** Returns true if the file has exactly these bytes of a batch; content: a buffer with space for one more byte. */
    boolean holds(ByteBuffer expected, int at, int length, ByteBuffer content) throws IOException {
        return read(content) == length && content.slice(0, length).mismatch(expected.slice(at, length)) < 0;
    }

    /** Reads the file into a buffer; returns the number of bytes that fit, or -1 if the file does not exist. */
    int read(ByteBuffer content) throws IOException {
        if (!certain && !find())
            return -1;
        content.clear();
        return Math.max(channel.read(content, 0), 0);
    }

    /** Opens the file of that name, unless it is open already; returns false if it does not exist. */
    private boolean find() throws IOException {
        try {
            if (channel != null
                && !Files.readAttributes(path, BasicFileAttributes.class).fileKey().equals(identity))
                release();
            if (channel == null) {
                channel = FileChannel.open(path, StandardOpenOption.READ);
                identity = Files.readAttributes(path, BasicFileAttributes.class).fileKey();
            }
        } catch (NoSuchFileException missing) {
            return false;
        }
        certain = true;
        return true;
    }

    void release() throws IOException {
        if (channel != null)
            channel.close();
        channel = null;
        certain = false;
    }
}
