package conformance;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Producer state of a log: kafka.log.ProducerStateManager (2.4 - 3.4), then the class of that name in
 * o.a.k.storage.internals.log. Entries and batches were Scala classes, Java classes with fields, and records.
 */
final class LogProducers {
    private final Members.Reader manager;
    private final Method described;
    private Members.Reader active;
    private Members.Reader ongoing;
    private Members.Reader unreplicated;
    private Members.Reader end;
    private Members.Reader[] entry;
    private Members.Reader open;
    private Members.Reader batches;
    private Members.Reader[] batch;
    private Members.Reader[] description;

    LogProducers(Class<?> log) {
        manager = new Members.Reader(log, "producerStateManager");
        described = Members.methodOrNull(log, "activeProducers", 0);
    }

    /** Adds the map end offset, the open and the unreplicated transactions, and every producer. */
    void state(Object log, Reply reply) throws Throwable {
        Object producers = manager.read(log);
        if (active == null) {
            Class<?> type = producers.getClass();
            active = new Members.Reader(type, "activeProducers");
            ongoing = new Members.Reader(type, "ongoingTxns");
            unreplicated = new Members.Reader(type, "unreplicatedTxns");
            end = new Members.Reader(type, "mapEndOffset");
        }
        reply.add(end.readLong(producers));
        offsets((Map<?, ?>) ongoing.read(producers), reply);
        offsets((Map<?, ?>) unreplicated.read(producers), reply);
        List<Object> entries = entries(active.read(producers));
        reply.add(entries.size());
        Map<Long, Long> begun = entries.isEmpty() || described == null ? null : begun(log);
        for (Object one : entries)
            add(one, begun, reply);
    }

    /** Returns where the open transaction of each producer begins, or -1, as a broker describes its producers. */
    private Map<Long, Long> begun(Object log) throws Throwable {
        Map<Long, Long> begun = new HashMap<>();
        Object all = Members.call(described, log);
        for (Object one : all instanceof Collection<?> java ? java : Options.list(all)) {
            if (description == null)
                description = Members.readers(one.getClass(), "producerId", "currentTxnStartOffset");
            begun.put(description[0].readLong(one), description[1].readLong(one));
        }
        return begun;
    }

    private static void offsets(Map<?, ?> transactions, Reply reply) {
        reply.add(transactions.size());
        for (Object offset : transactions.keySet())
            reply.add((Long) offset);
    }

    /** Returns the producers, ordered by id. */
    private List<Object> entries(Object map) throws Throwable {
        Object values = map instanceof Map<?, ?> java ? new ArrayList<>(java.values())
            : Members.call(Members.method(map.getClass(), "values", 0), map);
        List<Object> entries = new ArrayList<>(Options.list(values));
        if (entries.isEmpty())
            return entries;
        if (entry == null) {
            Class<?> type = entries.get(0).getClass();
            entry = Members.readers(type, "producerId", "producerEpoch", "coordinatorEpoch", "lastTimestamp");
            open = new Members.Reader(type, "currentTxnFirstOffset");
            batches = new Members.Reader(type, "batchMetadata");
        }
        List<Map.Entry<Long, Object>> keyed = new ArrayList<>();
        for (Object one : entries)
            keyed.add(Map.entry(entry[0].readLong(one), one));
        keyed.sort(Comparator.comparingLong(Map.Entry::getKey));
        entries.clear();
        for (Map.Entry<Long, Object> one : keyed)
            entries.add(one.getValue());
        return entries;
    }

    private void add(Object one, Map<Long, Long> begun, Reply reply) throws Throwable {
        for (Members.Reader field : entry)
            reply.add(field.readLong(one));
        Object offset = begun == null ? Options.get(open.read(one)) : begun.get(entry[0].readLong(one));
        reply.add(offset == null ? -1 : ((Number) offset).longValue());
        Object all = batches.read(one);
        List<?> remembered = all instanceof Collection<?> java ? new ArrayList<>(java) : Options.list(all);
        reply.add(remembered.size());
        for (Object each : remembered) {
            if (batch == null)
                batch = Members.readers(each.getClass(), "lastSeq", "lastOffset", "offsetDelta", "timestamp");
            for (Members.Reader field : batch)
                reply.add(field.readLong(each));
        }
    }
}
