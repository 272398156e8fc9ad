// Reader of Kafka's files without any library: `node reader.mjs DIR` prints each answer that differs from queries.tsv.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

const SIZES = { offset: 8, time: 12, transaction: 34 };
const long = (number, bits = 64) => BigInt.asIntN(bits, number);
const text = (value) => value === null ? "null" : typeof value === "string" ? value : Array.isArray(value) ? `[${value.map(text)}]` : `${value}`;

function search(keys, target, size) {
  const last = keys.length - 1;
  if (last < 0) return [-1, -1];
  const hot = Math.max(0, last - Math.floor(8192 / size));
  if (keys[hot] >= target && keys[0] > target) return [-1, 0];
  let [low, high] = keys[hot] < target ? [hot, last] : [0, hot];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (keys[middle] === target) return [middle, middle];
    if (keys[middle] > target) high = middle - 1;
    else low = middle;
  }
  return [low, low === last ? -1 : low + 1];
}

function ofIndex(kind, data, isNew, base, op, args) {
  const size = SIZES[kind], starts = Array.from({ length: Math.floor(data.length / size) }, (_, n) => n * size);
  if (kind === "transaction") return ofTransactions(data, starts, isNew, base, op, args);
  const int = (at) => BigInt(data.readInt32BE(at));
  const rows = starts.map((at) => kind === "offset" ? [long(base + int(at)), int(at + 4)] : [data.readBigInt64BE(at), long(base + int(at + 8))]);
  const last = rows.at(-1), slot = Number(args[0]);
  if (op === "sanity_check") {
    const low = last && (kind === "offset" ? last[0] < base : last[1] < base || last[0] < rows[0][0]);
    return low || data.length % size ? "error corrupt" : null;
  }
  if (op === "entry") return slot < rows.length ? rows[slot] : "error invalid_argument";
  if (op === "lookup") {
    const [found] = search(rows.map((row) => row[0]), args[0], size);
    return found >= 0 ? rows[found] : kind === "offset" ? [base, 0] : [-1, base];
  }
  const [, upper] = search(rows.map((row) => row[1]), long(args[1] + args[2], 32), size);
  return upper >= 0 ? rows[upper] : null;
}

function ofTransactions(data, starts, isNew, base, op, [fetch = 0n, upper = 0n]) {
  const found = [];
  for (const at of starts) {
    const row = [2, 10, 18, 26].map((field) => data.readBigInt64BE(at + field));
    if (isNew ? data.readInt16BE(at) !== 0 : data.readInt8(at) > 0) return "error unsupported_version";
    if (op === "sanity_check" && row[2] < base) return "error corrupt";
    if (op === "all_aborted" || (row[2] >= fetch && row[1] < upper)) found.push(row);
    if (op === "collect_aborted" && row[3] >= upper) return `{"aborted":${text(found)},"complete":true}`;
  }
  return { all_aborted: found, sanity_check: null, collect_aborted: `{"aborted":${text(found)},"complete":false}` }[op];
}

const [root] = process.argv.slice(2), [major, minor] = basename(root).split(".").map(Number);
let asked = 0, wrong = 0;
for (const line of readFileSync(join(root, "queries.tsv"), "utf8").split("\n").filter(Boolean)) {
  const [name, kind, path, base, op, numbers, expected] = line.split("\t");
  if (!(kind in SIZES)) continue;
  const args = numbers.split(",").filter(Boolean).map(BigInt);
  const mine = text(ofIndex(kind, readFileSync(join(root, path)), major * 100 + minor >= 404, BigInt(base), op, args));
  asked++;
  if (mine !== expected && ++wrong) console.log(`${name}: ${op}(${args}): ${mine} instead of ${expected}`);
}
console.log(`${asked} queries, ${wrong} wrong`);
process.exit(wrong ? 1 : 0);
