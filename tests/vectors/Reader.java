// Reader of sound index files of Kafka: `java Reader.java DIR` prints each answer that differs from sound.tsv.
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

class Reader {
    static LongStream answer(String kind, ByteBuffer data, long base, String query, long[] numbers) {
        int size = Map.of("offset", 8, "time", 12, "transaction", 34).get(kind);
        IntFunction<long[]> entry = at -> switch (kind) {
            case "offset" -> new long[] {base + data.getInt(at), data.getInt(at + 4)};
            case "time" -> new long[] {data.getLong(at), base + data.getInt(at + 8)};
            default -> IntStream.of(2, 10, 18, 26).mapToLong(field -> data.getLong(at + field)).toArray();
        };
        var rows = IntStream.range(0, data.limit() / size).mapToObj(slot -> entry.apply(slot * size));
        return LongStream.of(switch (query) {
            case "entry" -> entry.apply((int) numbers[0] * size);
            case "lookup" -> rows.takeWhile(row -> row[0] <= numbers[0]).reduce((row, next) -> next)
                .orElse(kind.equals("offset") ? new long[] {base, 0} : new long[] {-1, base});
            case "fetch_upper_bound" -> rows.filter(row -> row[1] >= numbers[1] + numbers[2]).findFirst().orElse(new long[0]);
            default -> rows.filter(row -> row[2] >= numbers[0] && row[1] < numbers[1]).flatMapToLong(LongStream::of).toArray();
        });
    }

    public static void main(String[] words) throws Exception {
        Path root = Path.of(words[0]);
        List<String> lines = Files.readAllLines(root.resolve("sound.tsv"));
        int wrong = 0;
        for (String line : lines) {
            String[] columns = line.split("\t", -1);
            ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(root.resolve(columns[1])));
            long[] numbers = Stream.of(columns[4].split(" ")).mapToLong(Long::parseLong).toArray();
            LongStream found = answer(columns[0], data, Long.parseLong(columns[2]), columns[3], numbers);
            String mine = found.mapToObj(Long::toString).collect(Collectors.joining(" "));
            if (!mine.equals(columns[5])) {
                wrong++;
                System.out.printf("%s: %s %s: %s instead of %s%n", columns[1], columns[3], columns[4], mine, columns[5]);
            }
        }
        System.out.printf("%d queries, %d wrong%n", lines.size(), wrong);
        System.exit(Math.min(wrong, 1));
    }
}
