package conformance;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Kafka's own unit tests, executed with the classes of a loader. Its parent has this class and JUnit. */
public final class KafkaTests {
    private final String timeout;
    private volatile int executing;

    /** timeout: of a test, as JUnit reads it. */
    public KafkaTests(String timeout) {
        this.timeout = timeout;
    }

    /** Returns the number of tests that have begun; any thread may call it. */
    public int executing() {
        return executing;
    }

    /** Executes all tests of classes; returns the id of each method, whether it failed, and the places it reached. */
    public String[] reached(ClassLoader loader, String[] classes, Supplier<int[]> taken) {
        List<DiscoverySelector> selectors = new ArrayList<>();
        for (String name : classes) {
            try {
                selectors.add(DiscoverySelectors.selectClass(Class.forName(name, false, loader)));
            } catch (ClassNotFoundException inAnotherRelease) {
                continue;
            }
        }
        List<String> found = new ArrayList<>();
        execute(loader, selectors, new TestExecutionListener() {
            @Override
            public void executionStarted(TestIdentifier test) {
                executing++;
                if (test.isTest())
                    taken.get();
            }

            @Override
            public void executionFinished(TestIdentifier test, TestExecutionResult result) {
                if (test.isTest() || hasFailed(result))
                    found.add(method(test) + "\t" + hasFailed(result) + "\t"
                        + Arrays.stream(taken.get()).mapToObj(String::valueOf).collect(Collectors.joining(" ")));
            }
        });
        return found.toArray(String[]::new);
    }

    /** Executes the methods with these ids, one by one; returns the first one that fails, or null. */
    public String firstFailure(ClassLoader loader, String[] methods) {
        boolean[] failed = new boolean[1];
        for (String id : methods) {
            execute(loader, List.of(DiscoverySelectors.selectUniqueId(id)), new TestExecutionListener() {
                @Override
                public void executionStarted(TestIdentifier test) {
                    executing++;
                }

                @Override
                public void executionFinished(TestIdentifier test, TestExecutionResult result) {
                    failed[0] |= hasFailed(result);
                }
            });
            if (failed[0])
                return id;
        }
        return null;
    }

    private void execute(ClassLoader loader, List<DiscoverySelector> selectors, TestExecutionListener listener) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            Launcher launcher = LauncherFactory.create();
            launcher.execute(LauncherDiscoveryRequestBuilder.request().selectors(selectors)
                .configurationParameter("junit.jupiter.execution.timeout.default", timeout)
                .configurationParameter("junit.jupiter.execution.parallel.enabled", "false").build(), listener);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static boolean hasFailed(TestExecutionResult result) {
        return result.getStatus() == TestExecutionResult.Status.FAILED;
    }

    /** Returns the id of a test's method, which may have several invocations. */
    private static String method(TestIdentifier test) {
        return test.getUniqueId().replaceAll("/\\[test-template-invocation:.*", "");
    }
}
