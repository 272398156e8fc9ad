package conformance;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;

/** Conversion of Java's and Scala's options and lists to Java types. */
final class Options {
    private Options() {}

    /** Returns the value of an Optional, an OptionalInt, an OptionalLong or a scala.Option; null if it is empty. */
    static Object get(Object option) throws Throwable {
        if (option instanceof Optional<?> some)
            return some.orElse(null);
        if (option instanceof OptionalInt some)
            return some.isPresent() ? some.getAsInt() : null;
        if (option instanceof OptionalLong some)
            return some.isPresent() ? some.getAsLong() : null;
        Class<?> type = option.getClass();
        boolean empty = (Boolean) Members.call(Members.method(type, "isEmpty", 0), option);
        return empty ? null : Members.call(Members.method(type, "get", 0), option);
    }

    /** Adds 0 for no number, or 1 and the number. */
    static void add(Object number, Reply reply) {
        reply.add(number == null ? 0 : 1);
        if (number != null)
            reply.add(((Number) number).longValue());
    }

    /** Returns the elements of a java.util.List or a scala.collection.Iterable. */
    static List<?> list(Object elements) throws Throwable {
        if (elements instanceof List<?> list)
            return list;
        Object iterator = Members.call(Members.method(elements.getClass(), "iterator", 0), elements);
        java.lang.reflect.Method hasNext = Members.method(iterator.getClass(), "hasNext", 0);
        java.lang.reflect.Method next = Members.method(iterator.getClass(), "next", 0);
        List<Object> result = new ArrayList<>();
        while ((Boolean) Members.call(hasNext, iterator))
            result.add(Members.call(next, iterator));
        return result;
    }
}
