package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** RemoteIndexCache.init: foreign names are not looked at, and a file that is not sound counts as missing. */
public final class CachedFiles {
    private static final Pattern NAME =
        Pattern.compile("\\d+_[A-Za-z0-9_-]{22}\\.(index|timeindex|txnindex)(\\.tmp|\\.deleted)?");

    private CachedFiles() { }

    public static Stream<Path> list(Path directory) throws IOException {
        return Files.list(directory).filter(path -> NAME.matcher(path.getFileName().toString()).matches());
    }

    public static boolean exists(Path path, LinkOption... options) throws IOException {
        if (!Files.exists(path, options))
            return false;
        File file = path.toFile();
        long baseOffset = Long.parseLong(file.getName().substring(0, file.getName().indexOf('_')));
        try {
            if (file.getName().endsWith(".timeindex"))
                new TimeIndex(file, baseOffset, Integer.MAX_VALUE, false).sanityCheck();
            else if (file.getName().endsWith(".index"))
                new OffsetIndex(file, baseOffset, Integer.MAX_VALUE, false).sanityCheck();
            else
                new TransactionIndex(baseOffset, file).sanityCheck();
            return true;
        } catch (CorruptIndexException corrupt) {
            Files.delete(path);
            return false;
        }
    }
}
