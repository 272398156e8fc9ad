"""Reader of sound index files of Kafka: ``reader.py DIR`` prints each answer that differs from sound.tsv."""

import struct
import sys
from bisect import bisect_left, bisect_right
from pathlib import Path

LAYOUTS = {"offset": ">ii", "time": ">qi", "transaction": ">hqqqq"}


def answer(kind, data, base, query, numbers):
    entries = struct.iter_unpack(LAYOUTS[kind], data)
    if query == "collect_aborted":
        fetch, upper = numbers
        return [n for _, *entry in entries if entry[2] >= fetch and entry[1] < upper for n in entry]
    rows = [(base + a, b) if kind == "offset" else (a, base + b) for a, b in entries]
    if query == "entry":
        return rows[numbers[0]]
    if query == "lookup":
        above = bisect_right(rows, numbers[0], key=lambda row: row[0])
        return rows[above - 1] if above else (base, 0) if kind == "offset" else (-1, base)
    bound = bisect_left(rows, numbers[1] + numbers[2], key=lambda row: row[1])
    return rows[bound] if bound < len(rows) else ()


root, wrong = Path(sys.argv[1]), 0
lines = (root / "sound.tsv").read_text().splitlines()
for line in lines:
    kind, path, base, query, words, expected = line.split("\t")
    found = answer(kind, (root / path).read_bytes(), int(base), query, [*map(int, words.split())])
    if (mine := " ".join(map(str, found))) != expected:
        wrong += 1
        print(f"{path}: {query} {words}: {mine} instead of {expected}")
print(f"{len(lines)} queries, {wrong} wrong")
sys.exit(wrong > 0)
