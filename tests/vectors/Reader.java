// Reader of Kafka's index files without any library: `java Reader.java DIR` prints each answer that differs.
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;

public class Reader {
    static final Map<String, Integer> SIZES = Map.of("offset", 8, "time", 12, "transaction", 34);

    static String list(long... row) {
        return Arrays.toString(row).replace(" ", "");
    }

    static int[] search(List<long[]> rows, int column, long target, int size) {
        int last = rows.size() - 1, hot = Math.max(0, last - 8192 / size), low = 0, high = hot;
        if (last < 0) return new int[] {-1, -1};
        if (rows.get(hot)[column] < target) { low = hot; high = last; }
        else if (rows.get(0)[column] > target) return new int[] {-1, 0};
        while (low < high) {
            int middle = (low + high + 1) >>> 1;
            long key = rows.get(middle)[column];
            if (key == target) return new int[] {middle, middle};
            if (key > target) high = middle - 1; else low = middle;
        }
        return new int[] {low, low == last ? -1 : low + 1};
    }

    static String ofIndex(String kind, ByteBuffer data, long base, String op, long[] args) {
        int size = SIZES.get(kind), slot = -1;
        boolean byOffset = kind.equals("offset");
        List<long[]> rows = new ArrayList<>();
        for (int at = 0; at + size <= data.limit(); at += size)
            rows.add(byOffset ? new long[] {base + data.getInt(at), data.getInt(at + 4)} : new long[] {data.getLong(at), base + data.getInt(at + 8)});
        long[] last = rows.isEmpty() ? null : rows.get(rows.size() - 1);
        String none = "null";
        switch (op) {
            case "sanity_check" -> {
                boolean low = last != null && (last[byOffset ? 0 : 1] < base || !byOffset && last[0] < rows.get(0)[0]);
                none = low || data.limit() % size != 0 ? "error corrupt" : "null";
            }
            case "entry" -> { none = "error invalid_argument"; slot = args[0] < rows.size() ? (int) args[0] : -1; }
            case "lookup" -> { none = byOffset ? list(base, 0) : list(-1, base); slot = search(rows, 0, args[0], size)[0]; }
            default -> slot = search(rows, 1, (int) (args[1] + args[2]), size)[1];
        }
        return slot < 0 ? none : list(rows.get(slot));
    }

    static String ofTransactions(ByteBuffer data, boolean isNew, long base, String op, long[] args) {
        List<String> found = new ArrayList<>();
        boolean complete = false;
        for (int at = 0; at + 34 <= data.limit() && !complete; at += 34) {
            long[] row = {data.getLong(at + 2), data.getLong(at + 10), data.getLong(at + 18), data.getLong(at + 26)};
            if (isNew ? data.getShort(at) != 0 : data.get(at) > 0) return "error unsupported_version";
            if (op.equals("sanity_check") && row[2] < base) return "error corrupt";
            boolean collects = op.equals("collect_aborted");
            if (!collects || row[2] >= args[0] && row[1] < args[1]) found.add(list(row));
            complete = collects && row[3] >= args[1];
        }
        String all = "[" + String.join(",", found) + "]";
        return op.equals("sanity_check") ? "null" : op.equals("all_aborted") ? all : "{\"aborted\":" + all + ",\"complete\":" + complete + "}";
    }

    public static void main(String[] words) throws Exception {
        Path root = Path.of(words[0]);
        String[] release = root.getFileName().toString().split("\\.");
        boolean isNew = Integer.parseInt(release[0]) * 100 + Integer.parseInt(release[1]) >= 404;
        int asked = 0, wrong = 0;
        for (String line : Files.readAllLines(root.resolve("queries.tsv"))) {
            String[] columns = line.split("\t");
            if (!SIZES.containsKey(columns[1])) continue;
            ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(root.resolve(columns[2])));
            long base = Long.parseLong(columns[3]);
            long[] args = Stream.of(columns[5].split(",")).filter(word -> !word.isEmpty()).mapToLong(Long::parseLong).toArray();
            String mine = columns[1].equals("transaction") ? ofTransactions(data, isNew, base, columns[4], args) : ofIndex(columns[1], data, base, columns[4], args);
            asked++;
            if (!mine.equals(columns[6]) && ++wrong > 0)
                System.out.printf("%s: %s(%s): %s instead of %s%n", columns[0], columns[4], columns[5], mine, columns[6]);
        }
        System.out.printf("%d queries, %d wrong%n", asked, wrong);
        System.exit(Math.min(wrong, 1));
    }
}
