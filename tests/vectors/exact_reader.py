"""Exact reader of Kafka's files: ``exact_reader.py DIR`` prints each answer that differs from queries.tsv.

It follows the path of Kafka's binary search, so it has Kafka's answers about corrupt index files, too.
"""

import gzip
import json
import struct
import sys
from pathlib import Path

LAYOUTS = {"offset": struct.Struct(">ii"), "time": struct.Struct(">qi"), "transaction": struct.Struct(">hqqqq")}
BATCH = struct.Struct(">qiibIhiqqqhii")


def long(number, bits=64):
    """Return what Java's arithmetic makes of a number."""
    return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def search(keys, target, size):
    last = len(keys) - 1
    if last < 0:
        return -1, -1
    hot = max(0, last - 8192 // size)
    if keys[hot] >= target and keys[0] > target:
        return -1, 0
    low, high = (hot, last) if keys[hot] < target else (0, hot)
    while low < high:
        middle = (low + high + 1) // 2
        if keys[middle] == target:
            return middle, middle
        low, high = (low, middle - 1) if keys[middle] > target else (middle, high)
    return low, -1 if low == last else low + 1


def of_index(kind, data, is_new, base, op, *args):
    layout = LAYOUTS[kind]
    rows = list(layout.iter_unpack(data[: len(data) // layout.size * layout.size]))
    if kind == "transaction":
        return of_transactions(rows, is_new, base, op, *args)
    rows = [(long(base + a), b) if kind == "offset" else (a, long(base + b)) for a, b in rows]
    if op == "sanity_check":
        low = rows and (rows[-1][kind == "time"] < base or (kind == "time" and rows[-1][0] < rows[0][0]))
        return "error corrupt" if low or len(data) % layout.size else None
    if op == "entry":
        return rows[args[0]] if args[0] < len(rows) else "error invalid_argument"
    if op == "lookup":
        slot = search([row[0] for row in rows], args[0], layout.size)[0]
        return rows[slot] if slot >= 0 else (base, 0) if kind == "offset" else (-1, base)
    slot = search([row[1] for row in rows], long(args[1] + args[2], 32), layout.size)[1]
    return rows[slot] if slot >= 0 else None


def of_transactions(rows, is_new, base, op, fetch=0, upper=0):
    found = []
    for version, *row in rows:
        if version != 0 if is_new else version >= 256:
            return "error unsupported_version"
        if op == "sanity_check" and row[2] < base:
            return "error corrupt"
        if op == "all_aborted" or (row[2] >= fetch and row[1] < upper):
            found.append(row)
        if op == "collect_aborted" and row[3] >= upper:
            return {"aborted": found, "complete": True}
    return {"all_aborted": found, "sanity_check": None}.get(op, {"aborted": found, "complete": False})


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return (value >> 1) ^ -(value & 1), at


def batches(data):
    at = 0
    while at + 17 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        yield base, data[at : at + 12 + length], at
        at += 12 + length


def records(base, batch):
    magic = batch[16]
    if magic < 2:
        if batch[17] & 7:
            raise NotImplementedError
        return [(base, struct.unpack_from(">q", batch, 18)[0] if magic else -1, -1)]
    _, _, epoch, _, _, attributes, _, first, largest, _, _, _, count = BATCH.unpack_from(batch)
    if attributes & 7 > 1:
        raise NotImplementedError
    body, at, found = gzip.decompress(batch[61:]) if attributes & 7 else batch[61:], 0, []
    for _ in range(count):
        length, start = varint(body, at)
        timestamp, next_at = varint(body, start + 1)
        found.append((base + varint(body, next_at)[0], largest if attributes & 8 else first + timestamp, epoch))
        at = start + length
    return found


def last_of(base, batch):
    if batch[16] < 2 and batch[17] & 7:
        raise NotImplementedError
    return base + (struct.unpack_from(">i", batch, 23)[0] if batch[16] > 1 else 0)


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 * (value & 1)
    return value ^ 0xFFFFFFFF


def fields_of(base, batch):
    if batch[16] < 2:
        return base, len(batch), crc32c(batch), -1, -1, -1, -1
    _, _, epoch, _, _, _, _, _, largest, _, _, _, count = BATCH.unpack_from(batch)
    return base, len(batch), crc32c(batch), epoch, last_of(base, batch), count, largest


def of_logs(start_offset, logs, release, op, *args):
    every = [each for log in logs for each in batches(log)]
    end = last_of(*every[-1][:2]) + 1 if every else start_offset
    if op == "translate_offset":
        found = next(((b, base, at) for base, b, at in every if last_of(base, b) >= args[0]), None)
        return found and (found[1] if release >= [4, 0] else last_of(found[1], found[0]), found[2], len(found[0]))
    if op == "read_log":
        return next((fields_of(base, b) for base, b, _ in every if last_of(base, b) >= args[0]), None)
    if op == "read_next_offset":
        return end
    if op == "list_offsets" and args[0] in (-1, -2):
        batch = every[-1 if args[0] == -1 else 0][1] if every else bytes(17)
        epoch = struct.unpack_from(">i", batch, 12)[0] if batch[16] > 1 else -1
        return -1, (start_offset, end)[args[0] + 2], epoch
    if op not in ("find_offset", "list_offsets") or args[0] < 0:
        raise NotImplementedError
    start = args[1] if op == "find_offset" else 0
    for base, batch, _ in every:
        for offset, stamp, epoch in records(base, batch):
            if stamp >= args[0] and offset >= start:
                return stamp, offset, epoch
    return None


def answer(root, kind, path, base, op, args):
    release = [int(number) for number in root.name.split(".")]
    is_new = release >= [4, 4]
    if kind in LAYOUTS:
        return of_index(kind, (root / path).read_bytes(), is_new, base, op, *args)
    if op == "collect_from_segment":
        index = root / path / f"{base:020d}.txnindex"
        return of_index(
            "transaction", index.read_bytes() if index.exists() else b"", is_new, base, "collect_aborted", *args
        )
    logs = sorted((root / path).glob("*.log"))
    return of_logs(int(logs[0].stem), [log.read_bytes() for log in logs], release, op, *args)


def main(root):
    wrong = skipped = asked = 0
    for line in (root / "queries.tsv").read_text().splitlines():
        name, kind, path, base, op, args, expected = line.split("\t")
        numbers = [int(number) for number in args.split(",") if number]
        if kind not in LAYOUTS and "-sound-" not in name:
            continue
        asked += 1
        try:
            mine = answer(root, kind, path, int(base), op, numbers)
        except NotImplementedError:
            skipped += 1
            continue
        if (mine if str(mine).startswith("error") else json.dumps(mine, separators=(",", ":"))) != expected:
            wrong += 1
            sys.stdout.write(f"{name}: {op}({args}): {mine} instead of {expected}\n")
    sys.stdout.write(f"{asked} queries, {skipped} not answered, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
