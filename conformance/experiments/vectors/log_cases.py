"""Hand-written cases of test vectors for segments and logs: formats, codecs, transactions, corruption and recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.operations import Operation
from conformance.operations.batches import encode
from kidx.segment import follower_append_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.operations.batches import Batch

BASE: Final = 1000
TIME: Final = 1_700_000_000_000
_Steps = tuple[Operation, ...]
_CLOSE: Final = Operation("close_segment")
_DAY: Final = 86_400_000


def _open(*, exists: bool) -> Operation:
    return Operation("open_segment", (BASE, 100, 4096, 0, exists, 0, False, "", TIME))


def _batches(count: int = 12, **more: Any) -> list[dict[str, Any]]:
    """Return batches of three records with offset gaps; pairs of batches have the same largest timestamp."""
    return [
        {
            "base": BASE + 5 * n,
            "records": [[i, TIME + 100 * (n // 2) - 30 * i, 20] for i in (0, 2, 3)],
            "epoch": n // 4,
            **more,
        }
        for n in range(count)
    ]


def _old(magic: int) -> list[dict[str, Any]]:
    """Return messages of an old format, each with one record."""
    records = ([[0, TIME + 50 * (n % 7) if magic else -1, 20, 3]] for n in range(20))
    return [{"base": BASE + 2 * n, "records": each, "magic": magic} for n, each in enumerate(records)]


def _transactions() -> list[dict[str, Any]]:
    """Return two overlapping transactions, of which the first is aborted and the second committed."""
    data = [
        {
            "base": BASE + 10 * n,
            "records": [[i, TIME + 10 * n + i, 20] for i in range(3)],
            "producer": [7 + n % 2, 0, 3 * (n // 2)],
            "transactional": True,
        }
        for n in range(6)
    ]
    ends = zip(((7, "abort"), (8, "commit")), (60, 61), strict=True)
    return [
        *data,
        *(
            {"base": BASE + at, "records": [[0, TIME + at]], "marker": end, "producer": [producer, 0, -1]}
            for (producer, end), at in ends
        ),
    ]


def _appended(batches: Iterable[Batch]) -> _Steps:
    """Return appends of the batches, one by one, with the arguments of a follower."""
    data = [encode([batch]) for batch in batches]
    return tuple(Operation("append_records", (each.hex(), *follower_append_info(each))) for each in data)


def _damaged(suffix: str, how: str, *numbers: int) -> Operation:
    return Operation("damage_segment_file", (suffix, how, list(numbers)))


def segment_cases() -> Iterator[tuple[str, str, _Steps]]:
    """Yield name, title and steps of each case of a segment; if a name begins with ``sound``, its files are sound."""
    formats = {codec: _batches(codec=codec) for codec in ("gzip", "snappy", "lz4", "zstd")}
    formats |= {"plain": _batches(), "v0": _old(0), "v1": _old(1), "stamped": _batches(log_append_time=TIME + 7)}
    formats["v1-gzip"] = _batches(codec="gzip", magic=1)
    for name, batches in formats.items():
        yield f"sound-{name}", f"Batches: {name}", (_open(exists=False), *_appended(batches), _CLOSE)
    noted = Operation("update_txn_index", (7, BASE, BASE + 60, True, BASE + 10))
    aborted = (_open(exists=False), *_appended(_transactions()), noted, _CLOSE)
    yield "sound-transactions", "An aborted transaction and a committed one", aborted
    yield "sound-empty", "No batch", (_open(exists=False), _CLOSE)
    plain = (_open(exists=False), *_appended(_batches()), _CLOSE)
    recovered = (_open(exists=True), Operation("recover_segment"), _CLOSE)
    gone = (_damaged(".index", "remove_file"), _damaged(".timeindex", "remove_file"))
    checked = (_open(exists=True), Operation("check_segment", (False,)))
    yield "sound-rebuilt", "Indexes that recovery has rebuilt", (*plain, *gone, *recovered)
    yield (
        "sound-cut",
        "A batch that was cut off is gone after recovery",
        (*plain, _damaged(".log", "cut_file", 1000), *recovered),
    )
    yield (
        "sound-flipped",
        "A batch with a wrong checksum ends the log",
        (*plain, _damaged(".log", "flip_bit", 900, 3), *recovered),
    )
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        for name, damage in (
            ("zeroed", ("zero_range", 0, 4 * size)),
            ("partial", ("pad_file", 3, 1)),
            ("empty", ("cut_file", 0)),
        ):
            steps = (*plain, _damaged(suffix, damage[0], *damage[1:]), *checked, _CLOSE)
            yield f"{name}{suffix.replace('.', '-')}", f"The check of a corrupt {suffix}", steps


def _log(*batches: Batch, follower: bool = False, **settings: Any) -> _Steps:
    """Return the steps that open a log of small segments and append each batch."""
    sizes = {"segment.bytes": 500, "segment.index.bytes": 120, "index.interval.bytes": 100}
    given = {name.replace("_", "."): value for name, value in settings.items()}
    name = "append_as_follower" if follower else "append_as_leader"
    appends = (Operation(name, ([batch], batch.get("epoch", 0))) for batch in batches)
    return (
        Operation("open_log", (sizes | given, 0, 0, True, TIME)),
        *appends,
        Operation("update_high_watermark", (1 << 40,)),
    )


def log_cases() -> Iterator[tuple[str, str, _Steps]]:
    """Yield name, title and steps of each case of a log; if a name begins with ``sound``, its files are sound."""
    closed = (Operation("close_log", (True,)),)
    plain = [
        batch | {"base": 0, "records": [[n, *more] for n, (_, *more) in enumerate(batch["records"])]}
        for batch in _batches()
    ]
    yield "sound-empty", "No batch", _log() + closed
    yield "sound-plain", "Segments of some batches, by several leaders", _log(*plain) + closed
    yield "sound-stamped", "With the broker's time", _log(*plain, message_timestamp_type="LogAppendTime") + closed
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        yield f"sound-{codec}", f"Compressed by the leader: {codec}", _log(*plain, compression_type=codec) + closed
    yield "sound-v1", "Messages of format v1, as a follower got them", _log(*_old(1), follower=True) + closed
    yield "sound-transactions", "Transactions", _log(*_transactions()) + closed
    deleted = (Operation("delete_records", (11,)),)
    yield "deleted", "Records before an offset were deleted", _log(*plain) + deleted + closed
    killed = (Operation("crash_log"),)
    yield "killed", "Not closed", _log(*plain) + killed
    index = f"{0:020d}.index"
    half = (
        Operation("damage_log_file", (index, "remove_file", [])),
        Operation("damage_log_file", (f"{index}.swap", "write_file", ["0000000500000000"])),
    )
    yield (
        "half-renamed",
        "An index was still to be renamed when the process was killed",
        (*_log(*plain), *closed, *half),
    )
    written, opening = _log(*plain), _log()[0]
    lost = Operation("damage_log_file", (f"{1:020d}.index", "write_file", ["0000000500000000"]))
    yield "orphaned-index", "Opened again with an index that had no log", (*written, *closed, lost, opening, *closed)
    lone = [{"records": [[0, TIME]], "producer": [9, 1, sequence]} for sequence in (4, 5, 5, 4, 9)]
    fenced = [{"records": [[0, TIME]], "producer": [9, 0, 6]}, {"records": [[0, TIME]], "producer": [10, 0, 0]}]
    later = (Operation("set_clock", (TIME + 9 * _DAY,)), Operation("expire_producers"))
    known = [{"records": [[0, TIME]], "producer": [11, 0, sequence]} for sequence in (0, 1, 1, 0, 5)]
    yield "producers", "Sequence numbers and epochs of producers", _log(*lone, *fenced, *known) + later + closed
    rolls = (Operation("roll_log"), Operation("roll_log"))
    full = _log(*plain[:2], {"records": [[0, TIME]], "producer": [9, 0, 0]}, segment_index_bytes=12)
    yield "rolled", "Rolled while the newest segment is empty", full + rolls + closed
