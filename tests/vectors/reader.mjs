// Reader of sound index files of Kafka: `node reader.mjs DIR` prints each answer that differs from sound.tsv.
import { readFileSync } from "node:fs";

function answer(kind, data, base, query, numbers) {
  const size = { offset: 8, time: 12, transaction: 34 }[kind];
  const int = (at) => BigInt(data.readInt32BE(at));
  const long = (at) => data.readBigInt64BE(at);
  const entry = {
    offset: (at) => [base + int(at), int(at + 4)],
    time: (at) => [long(at), base + int(at + 8)],
    transaction: (at) => [long(at + 2), long(at + 10), long(at + 18), long(at + 26)],
  }[kind];
  const rows = Array.from({ length: data.length / size }, (_, slot) => entry(slot * size));
  switch (query) {
    case "entry":
      return rows[numbers[0]];
    case "lookup":
      return rows.findLast((row) => row[0] <= numbers[0]) ?? (kind === "offset" ? [base, 0] : [-1, base]);
    case "fetch_upper_bound":
      return rows.find((row) => row[1] >= numbers[1] + numbers[2]) ?? [];
    case "collect_aborted":
      return rows.filter((row) => row[2] >= numbers[0] && row[1] < numbers[1]).flat();
  }
}

const root = process.argv[2];
const lines = readFileSync(`${root}/sound.tsv`, "utf8").split("\n").slice(0, -1);
const wrong = lines.filter((line) => {
  const [kind, path, base, query, words, expected] = line.split("\t");
  const mine = answer(kind, readFileSync(`${root}/${path}`), BigInt(base), query, words.split(" ").map(BigInt)).join(" ");
  if (mine !== expected) console.log(`${path}: ${query} ${words}: ${mine} instead of ${expected}`);
  return mine !== expected;
});
console.log(`${lines.length} queries, ${wrong.length} wrong`);
process.exit(wrong.length ? 1 : 0);
