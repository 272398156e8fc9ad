package conformance;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * A record of everything that Kafka's classes do to the files of one directory, in their order.
 *
 * <p>Calls in Kafka's bytecode that write, rename, remove or sync come by here (see journal.py). What a call has changed
 * is found by comparing the directory with what it was: contents, lengths and names. Only a sync has to say what it is
 * about. A copy of this class lives in the class loader of each release that is recorded.
 */
public final class Journal {
    private static final int STEP = 0;
    private static final int CONTENT = 1;
    private static final int NAMES = 2;
    private static final int SYNC = 3;
    private static final int SYNC_DIRECTORY = 4;
    private static final int SYNC_OF_UNKNOWN = 5;

    private static final int WHOLE = 0;
    private static final int DATA = 1;
    private static final int MAPPING = 2;

    private static final int DEPTH = 12;
    /** A closure: lambda$flush$0 of Java, $anonfun$flush$1 of Scala. */
    private static final Pattern LAMBDA = Pattern.compile("(?:lambda|\\$anonfun)\\$(\\w+?)\\$.*");

    /** The inode of every open channel, stream, descriptor and mapping. */
    private static final Map<Object, Long> OPENED = new IdentityHashMap<>();
    private static final Map<String, Long> NAMED = new TreeMap<>();
    private static final Map<Long, Integer> FILES = new HashMap<>();
    private static final Map<Integer, byte[]> CONTENTS = new HashMap<>();
    private static ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private static DataOutputStream out = new DataOutputStream(bytes);
    private static Path directory;
    private static Path opening;
    private static long inode;
    private static int files;

    private Journal() {}

    /** Starts a record of a directory, which exists. */
    public static synchronized void begin(String path) throws IOException {
        OPENED.clear();
        NAMED.clear();
        FILES.clear();
        CONTENTS.clear();
        bytes = new ByteArrayOutputStream();
        out = new DataOutputStream(bytes);
        files = 0;
        directory = Path.of(path);
        inode = inode(directory);
        look();
    }

    /** Says that a step begins. */
    public static synchronized void step(int number) throws IOException {
        if (directory == null)
            return;
        look();
        out.writeByte(STEP);
        out.writeInt(number);
    }

    /** Ends the record, and returns it. */
    public static synchronized byte[] end() throws IOException {
        look();
        directory = null;
        OPENED.clear();
        CONTENTS.clear();
        return bytes.toByteArray();
    }

    // -- what Kafka's classes call ---------------------------------------------------------------------------------

    /** Something has been written, renamed or removed, perhaps. */
    public static synchronized void touched() {
        try {
            look();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static FileChannel open(Path path, OpenOption[] options) throws IOException {
        return opened(FileChannel.open(path, options), path);
    }

    public static FileChannel open(Path path, Set<? extends OpenOption> options, FileAttribute<?>[] attributes)
            throws IOException {
        return opened(FileChannel.open(path, options, attributes), path);
    }

    private static synchronized <T> T opened(T channel, Path path) throws IOException {
        OPENED.put(channel, inode(path));
        touched();
        return channel;
    }

    /** The constructor of a stream is about to be called with these arguments. */
    public static void opening(File file, Object mode) {
        opening = file.toPath();
    }

    public static void opening(String file, Object mode) {
        opening = Path.of(file);
    }

    public static void opening(File file, boolean append) {
        opening = file.toPath();
    }

    public static void opening(String file, boolean append) {
        opening = Path.of(file);
    }

    public static void opening(File file) {
        opening = file.toPath();
    }

    public static void opening(String file) {
        opening = Path.of(file);
    }

    /** It has been called. */
    public static void opened(Object stream) throws IOException {
        opened(stream, opening);
    }

    public static FileChannel getChannel(RandomAccessFile file) {
        return alike(file.getChannel(), file);
    }

    public static FileChannel getChannel(FileOutputStream file) {
        return alike(file.getChannel(), file);
    }

    public static FileDescriptor getFD(RandomAccessFile file) throws IOException {
        return alike(file.getFD(), file);
    }

    public static FileDescriptor getFD(FileOutputStream file) throws IOException {
        return alike(file.getFD(), file);
    }

    public static MappedByteBuffer map(FileChannel channel, FileChannel.MapMode mode, long position, long size)
            throws IOException {
        MappedByteBuffer buffer = alike(channel.map(mode, position, size), channel);
        touched();
        return buffer;
    }

    private static synchronized <T> T alike(T other, Object file) {
        Long known = OPENED.get(file);
        if (known != null)
            OPENED.put(other, known);
        return other;
    }

    public static void force(FileChannel channel, boolean metadata) throws IOException {
        touched();
        channel.force(metadata);
        synced(channel, metadata ? WHOLE : DATA);
    }

    public static MappedByteBuffer force(MappedByteBuffer buffer) throws IOException {
        touched();
        buffer.force();
        synced(buffer, MAPPING);
        return buffer;
    }

    public static void sync(FileDescriptor descriptor) throws IOException {
        touched();
        descriptor.sync();
        synced(descriptor, WHOLE);
    }

    private static synchronized void synced(Object file, int how) throws IOException {
        if (directory == null)
            return;
        Long of = OPENED.get(file);
        Integer number = of == null ? null : FILES.get(of);
        if (number != null) {
            out.writeByte(SYNC);
            out.writeInt(number);
            out.writeByte(how);
        } else {
            out.writeByte(of == null ? SYNC_OF_UNKNOWN : SYNC_DIRECTORY);
            out.writeBoolean(of != null && of == inode);
        }
        out.writeUTF(callers());
    }

    /** The methods of Kafka that lead to a sync, the innermost one first. */
    private static String callers() {
        return StackWalker.getInstance().walk(frames -> frames
            .filter(frame -> frame.getClassName().contains("kafka."))
            .limit(DEPTH)
            .map(frame -> frame.getClassName().replaceFirst(".*\\.", "") + "."
                + LAMBDA.matcher(frame.getMethodName()).replaceFirst("$1"))
            .filter(name -> !name.endsWith("maybeHandleIOException") && !name.endsWith("nLock"))
            .distinct()
            .collect(Collectors.joining(" < ")));
    }

    // -- the directory ---------------------------------------------------------------------------------------------

    private static long inode(Path path) throws IOException {
        return ((Number) Files.getAttribute(path, "unix:ino")).longValue();
    }

    /** Writes down what is different now. */
    private static void look() throws IOException {
        if (directory == null)
            return;
        Map<String, Long> named = list();
        if (!named.equals(NAMED))
            rename(named);
        for (Map.Entry<String, Long> each : named.entrySet()) {
            byte[] content;
            try {
                content = Files.readAllBytes(directory.resolve(each.getKey()));
            } catch (NoSuchFileException gone) {
                continue;
            }
            int number = FILES.get(each.getValue());
            if (Arrays.equals(content, CONTENTS.get(number)))
                continue;
            CONTENTS.put(number, content);
            out.writeByte(CONTENT);
            out.writeInt(number);
            out.writeInt(content.length);
            out.write(content);
        }
    }

    private static Map<String, Long> list() throws IOException {
        Map<String, Long> named = new TreeMap<>();
        File[] listed = directory.toFile().listFiles();
        if (listed == null)
            return named;
        for (File file : listed)
            if (file.isFile())
                named.put(file.getName(), inode(file.toPath()));
        return named;
    }

    /** A renamed file is one change of two names; every other new or removed file is a separate change. */
    private static void rename(Map<String, Long> named) throws IOException {
        Map<Long, Integer> before = new HashMap<>(FILES);
        FILES.keySet().retainAll(named.values());
        for (long each : named.values())
            FILES.computeIfAbsent(each, unseen -> files++);
        Map<String, Long> gone = new TreeMap<>(NAMED);
        gone.keySet().removeAll(named.keySet());
        for (Map.Entry<String, Long> each : named.entrySet()) {
            if (each.getValue().equals(NAMED.get(each.getKey())))
                continue;
            String from = before.containsKey(each.getValue()) ? nameOf(each.getValue(), gone) : null;
            if (from != null)
                gone.remove(from);
            names(from, each.getKey(), FILES.get(each.getValue()));
        }
        for (String each : gone.keySet())
            names(each, null, -1);
        NAMED.clear();
        NAMED.putAll(named);
    }

    private static String nameOf(long of, Map<String, Long> names) {
        for (Map.Entry<String, Long> each : names.entrySet())
            if (each.getValue() == of)
                return each.getKey();
        return null;
    }

    private static void names(String from, String to, int number) throws IOException {
        out.writeByte(NAMES);
        out.writeUTF(from == null ? "" : from);
        out.writeUTF(to == null ? "" : to);
        out.writeInt(number);
    }
}
