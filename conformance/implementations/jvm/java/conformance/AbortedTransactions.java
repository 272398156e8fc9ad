package conformance;

import java.util.List;

/** Writes aborted transactions (AbortedTxn, TxnIndexSearchResult) of any release to replies. */
final class AbortedTransactions {
    static final String[] FIELDS = {"producerId", "firstOffset", "lastOffset", "lastStableOffset"};

    private Members.Reader[] fields;
    private Members.Reader transactions;
    private Members.Reader isComplete;

    /** The members of AbortedTxn are found when the first one is added. */
    AbortedTransactions() {}

    /** The members of AbortedTxn are found now. */
    AbortedTransactions(Class<?> txn, Class<?> result) {
        fields = Members.readers(txn, FIELDS);
        findMembersOf(result);
    }

    private void findMembersOf(Class<?> result) {
        transactions = new Members.Reader(result, "abortedTransactions");
        isComplete = new Members.Reader(result, "isComplete");
    }

    /** Adds the number of transactions, and the fields of each. */
    void add(Object txns, Reply reply) throws Throwable {
        List<?> all = Options.list(txns);
        reply.add(all.size());
        for (Object txn : all) {
            if (fields == null)
                fields = Members.readers(txn.getClass(), FIELDS);
            for (Members.Reader field : fields)
                reply.add(field.readLong(txn));
        }
    }

    /** Adds the transactions that a search has found, and whether the search is complete. */
    void addResult(Object result, Reply reply) throws Throwable {
        if (transactions == null)
            findMembersOf(result.getClass());
        add(transactions.read(result), reply);
        reply.add((Boolean) isComplete.read(result) ? 1 : 0);
    }
}
