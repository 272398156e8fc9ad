package conformance;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;

/** The file that a release works on, read from the disk after every step. */
final class WatchedFile {
    private File file;
    private FileChannel channel;
    private Object identity;
    private boolean certain;
    private ByteBuffer content = ByteBuffer.allocateDirect(1 << 14);

    /** Looks at a file from now on, which may be the same still or again; null: at none. */
    void watch(File file) {
        this.file = file;
        certain = false;
    }

    /** Says that there may be another file of that name by now, or none. */
    void doubt() {
        certain = false;
    }

    /** Whether the file holds just these bytes of a script; a length of {@link Script#NO_FILE}: whether there is none. */
    boolean holds(ByteBuffer expected, int at, int length) throws IOException {
        if (length == Script.NO_FILE) {
            certain = false;
            return file == null || !file.exists();
        }
        if (!certain && !find())
            return false;
        if (content.capacity() <= length)
            content = ByteBuffer.allocateDirect(2 * length);
        content.clear();
        int read = Math.max(channel.read(content, 0), 0);
        return read == length && content.slice(0, length).mismatch(expected.slice(at, length)) < 0;
    }

    /** Opens the file of that name, unless it is the one that is open; false if there is none. */
    private boolean find() throws IOException {
        if (file == null)
            return false;
        try {
            Object found = Files.readAttributes(file.toPath(), BasicFileAttributes.class).fileKey();
            if (channel == null || !found.equals(identity)) {
                release();
                channel = FileChannel.open(file.toPath(), StandardOpenOption.READ);
                identity = found;
            }
        } catch (NoSuchFileException missing) {
            return false;
        }
        certain = true;
        return true;
    }

    void overwrite(ByteBuffer content, int at, int length) throws IOException {
        if (file == null)
            return;
        if (length == Script.NO_FILE) {
            Files.deleteIfExists(file.toPath());
            certain = false;
            return;
        }
        byte[] bytes = new byte[length];
        content.get(at, bytes);
        Files.write(file.toPath(), bytes);
    }

    void release() throws IOException {
        if (channel != null)
            channel.close();
        channel = null;
        certain = false;
    }
}
