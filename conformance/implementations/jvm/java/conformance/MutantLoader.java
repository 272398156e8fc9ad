package conformance;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.jar.JarFile;

/** Loader of Kafka's own classes, some of them changed. All mutants share the third-party classes of its parent. */
public final class MutantLoader extends ClassLoader {
    /** Kafka's own jars, whose class files are read once. */
    public static final class Jars {
        private final Map<String, JarFile> places = new HashMap<>();
        private final Map<String, byte[]> read = new ConcurrentHashMap<>();
        private final URLClassLoader resources;

        public Jars(String[] paths) throws IOException {
            URL[] urls = new URL[paths.length];
            for (int i = 0; i < paths.length; i++) {
                urls[i] = url(paths[i]);
                JarFile jar = new JarFile(paths[i]);
                jar.stream().filter(entry -> entry.getName().endsWith(".class"))
                    .forEach(entry -> places.putIfAbsent(entry.getName(), jar));
            }
            resources = new URLClassLoader(urls, null);
        }

        private static URL url(String path) throws MalformedURLException {
            return new File(path).toURI().toURL();
        }

        private byte[] get(String file) {
            JarFile jar = places.get(file);
            return jar == null ? null : read.computeIfAbsent(file, name -> read(jar, name));
        }

        private static byte[] read(JarFile jar, String name) {
            try (InputStream bytes = jar.getInputStream(jar.getEntry(name))) {
                return bytes.readAllBytes();
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
