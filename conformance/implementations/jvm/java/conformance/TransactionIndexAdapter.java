package conformance;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.channels.FileChannel;

/** Adapter of TransactionIndex. AbortedTxn is a buffer of 34 bytes up to 4.3, and a generated message from 4.4. */
final class TransactionIndexAdapter extends IndexAdapter {
    private static final String[] FIELDS = AbortedTransactions.FIELDS;
    private static final int RECORD_BYTES = 34;
    private static final String STORAGE = "org.apache.kafka.storage.internals.log.";

    private final Constructor<?> constructor;
    private final Constructor<?> newTxn;
    private final Method[] setters;
    private final AbortedTransactions transactions;
    private final Field lastOffset;
    private final Field channel;
    private final Method append;
    private final Method allAbortedTxns;
    private final Method collectAbortedTxns;

    TransactionIndexAdapter(ClassLoader loader) throws Throwable {
        super(Members.type(loader, STORAGE + "TransactionIndex", "kafka.log.TransactionIndex"));
        Class<?> txn = Members.type(loader,
            STORAGE + "AbortedTxn", "kafka.log.AbortedTxn", "org.apache.kafka.common.message.AbortedTxn");
        boolean generated = txn.getName().startsWith("org.apache.kafka.common.message.");
        newTxn = Members.constructor(txn, generated ? 0 : FIELDS.length);
        setters = generated ? new Method[FIELDS.length] : null;
        for (int i = 0; generated && i < FIELDS.length; i++)
            setters[i] = Members.method(txn, "set" + FIELDS[i].substring(0, 1).toUpperCase() + FIELDS[i].substring(1), 1);
        Class<?> result = Members.type(loader, STORAGE + "TxnIndexSearchResult", "kafka.log.TxnIndexSearchResult");
        transactions = new AbortedTransactions(txn, result);
        constructor = Members.constructor(type, 2);
        lastOffset = Members.fieldOrNull(type, "lastOffset");
        channel = Members.fieldOrNull(type, "maybeChannel");
        append = Members.method(type, "append", 1);
        allAbortedTxns = Members.method(type, "allAbortedTxns", 0);
        collectAbortedTxns = Members.method(type, "collectAbortedTxns", 2);
    }

    @Override
    void open(File file, long baseOffset, int maxIndexSize, boolean writable) throws Throwable {
        index = Members.create(constructor, baseOffset, file);
    }

    private Object txn(long... values) throws Throwable {
        if (setters == null)
            return Members.create(newTxn, values[0], values[1], values[2], values[3]);
        Object txn = Members.create(newTxn);
        for (int i = 0; i < FIELDS.length; i++)
            Members.call(setters[i], txn, values[i]);
        return txn;
    }

    @Override
    void performOwn(String operation, long[] arguments, Reply reply) throws Throwable {
        switch (operation) {
            case "append_aborted" -> Members.call(append, index, txn(arguments));
            case "all_aborted" -> transactions.add(Members.call(allAbortedTxns, index), reply);
            case "collect_aborted" ->
                transactions.addResult(Members.call(collectAbortedTxns, index, arguments[0], arguments[1]), reply);
            default -> throw new UnsupportedOperationException("operation " + operation);
        }
    }

    @Override
    void state(Reply reply) throws Throwable {
        // The position of the next record; any other count would read the records, which may be corrupt.
        FileChannel open = (FileChannel) Options.get(channel.get(index));
        long entries = open == null ? 0 : open.position() / RECORD_BYTES;
        Object last = Options.get(lastOffset.get(index));
        reply.add(entries);
        for (int i = 0; i < 3; i++)  // a transaction index has no maximum, fullness and length
            reply.add(0);
        Options.add(last, reply);  // a list of at most one number
    }
}
