package conformance;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** Loader of Kafka's own classes, some of them changed. All mutants share the third-party classes of its parent. */
public final class MutantLoader extends ClassLoader {
    /** Kafka's own jars, and directories of further classes; each class file is read once. */
    public static final class Jars {
        private final Map<String, Path> places = new HashMap<>();
        private final Map<String, byte[]> read = new ConcurrentHashMap<>();
        private final URLClassLoader resources;

        public Jars(String[] paths) throws IOException {
            URL[] urls = new URL[paths.length];
            for (int i = 0; i < paths.length; i++) {
                urls[i] = url(paths[i]);
                Path path = Path.of(paths[i]);
                Path root = Files.isDirectory(path)
                    ? path : FileSystems.newFileSystem(path, (ClassLoader) null).getPath("/");
                try (Stream<Path> files = Files.walk(root)) {
                    files.filter(file -> file.toString().endsWith(".class"))
                        .forEach(file -> places.putIfAbsent(root.relativize(file).toString(), file));
                }
            }
            resources = new URLClassLoader(urls, null);
        }

        private static URL url(String path) throws MalformedURLException {
            return new File(path).toURI().toURL();
        }

        private byte[] get(String file) {
            Path place = places.get(file);
            return place == null ? null : read.computeIfAbsent(file, name -> read(place));
        }

        private static byte[] read(Path file) {
            try {
                return Files.readAllBytes(file);
            } catch (IOException unreadable) {
                throw new UncheckedIOException(unreadable);
            }
        }
    }

    private final Jars jars;
    private final Map<String, byte[]> changed = new HashMap<>();

    /** names, changed: names of class files as in a jar, and their content. */
    public MutantLoader(Jars jars, ClassLoader others, String[] names, byte[][] changed) {
        super(others);
        this.jars = jars;
        for (int i = 0; i < names.length; i++)
            this.changed.put(names[i], changed[i]);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (name.equals("conformance.Reach"))
            return Reach.class;
        synchronized (getClassLoadingLock(name)) {
            Class<?> loaded = findLoadedClass(name);
            if (loaded != null)
                return loaded;
            String file = name.replace('.', '/') + ".class";
            byte[] bytes = changed.containsKey(file) ? changed.get(file) : jars.get(file);
            return bytes == null ? super.loadClass(name, resolve) : defineClass(name, bytes, 0, bytes.length);
        }
    }

    @Override
    protected URL findResource(String name) {
        return jars.resources.getResource(name);
    }

    /** Verifies the changed classes; returns the reason why one cannot be loaded, or null. */
    public String unloadable() {
        for (String file : changed.keySet()) {
            try {
                Class.forName(file.substring(0, file.length() - ".class".length()).replace('/', '.'), true, this);
            } catch (ExceptionInInitializerError changedConstant) {
                continue;
            } catch (ClassNotFoundException | LinkageError rejected) {
                return rejected.toString();
            }
        }
        return null;
    }
}
