"""An explanation as a picture in the terminal, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kidx.layout import PAGE_BYTES
from kidx.printable import counted

if TYPE_CHECKING:
    from kidx.lookup.explain import Explanation, IndexLook

_WIDTH: Final = 60
_SHOWN: Final = 8
"""Segments and batches that are listed; of more, the first and the last ones."""


def draw(told: Explanation) -> Iterator[str]:
    """The lines of a picture: marks carry the meaning, not colours, so that nothing is lost in a pipe."""
    yield f"looking for {told.question} {told.target}"
    yield from _segments(told)
    for name, look in (("time index", told.time_index), ("offset index", told.offset_index)):
        if look is not None:
            yield from _index(name, look)
    if told.log is not None:
        yield from _log(told)
    yield ""
    if told.answer is None:
        yield "answer        none"
    else:
        epoch = "none" if told.answer.leader_epoch is None else told.answer.leader_epoch
        yield f"answer        offset {told.answer.offset}, timestamp {told.answer.timestamp}, leader epoch {epoch}"
    yield f"bytes touched {told.bytes_touched:,}; without the indexes {told.bytes_without_index:,}"


def _segments(told: Explanation) -> Iterator[str]:
    yield ""
    if not told.segments:
        yield "segments      none holds it: the target lies outside the log"
        return
    yield "segments"
    for look in _some(told.segments):
        if look is None:
            yield "   …"
        else:
            yield f" {'▶' if look.chosen else '·'} {look.base_offset:020d}  {look.why}"
    if told.remark:
        yield f"   note: {told.remark}"


def _index(name: str, look: IndexLook) -> Iterator[str]:
    yield ""
    pages = -(-look.entries * look.entry_size // PAGE_BYTES)
    there = f"{counted(look.entries, 'entry')} on {counted(pages, 'page')}"
    yield f"{name:<13} {look.file}: {there}, looking for {look.target}"
    if look.entries:
        yield f"   [{_bar(look, pages)}]  ○ cold page, ● warm page, ◆ where the entry lies"
    for number, probe in enumerate(look.probes, 1):
        yield f"   {number:>2}. slot {probe.slot:,}  page {probe.page:,}  {'hot' if probe.half == 'warm' else 'cold'}"
    found = " ".join(f"{field} {value}" for field, value in zip(look.found._fields, look.found, strict=True))
    yield f"   → {f'slot {look.slot:,}: ' if look.slot >= 0 else 'no entry at or before it: '}{found}"


def _bar(look: IndexLook, pages: int) -> str:
    width = min(_WIDTH, pages)
    marks = ["·"] * width

    def at(page: int) -> int:
        return page * width // pages

    for probe in look.probes:
        marks[at(probe.page)] = "●" if probe.half == "warm" else "○"
    if look.slot >= 0:
        marks[at(look.slot * look.entry_size // PAGE_BYTES)] = "◆"
    return "".join(marks)


def _log(told: Explanation) -> Iterator[str]:
    yield ""
    yield f"log           {told.log}: {counted(told.log_size, 'byte')}"
    if told.batches and told.log_size:
        start, end = told.batches[0].position, told.batches[-1].position + told.batches[-1].size
        left = start * _WIDTH // told.log_size
        right = max(left + 1, min(_WIDTH, -(-end * _WIDTH // told.log_size)))
        yield f"   [{'·' * left}{'█' * (right - left)}{'·' * (_WIDTH - right)}]  █ read: bytes {start:,} to {end:,}"
    for batch in _some(told.batches):
        if batch is None:
            yield "   …"
        else:
            yield (
                f" {'▶' if batch.opened else '·'} at {batch.position:,}: {counted(batch.size, 'byte')}, offsets"
                f" {batch.base_offset}–{batch.last_offset}, largest timestamp {batch.max_timestamp}"
                f"{'' if batch.opened else ', passed by its header'}"
            )


def _some(items: list[Any]) -> list[Any]:
    if len(items) <= _SHOWN:
        return items
    return [*items[: _SHOWN // 2], None, *items[-_SHOWN // 2 :]]


def as_data(told: Explanation) -> dict[str, Any]:
    """The same for ``--json``."""
    return {
        "segments": [
            {
                "base_offset": look.base_offset,
                "largest_timestamp": look.largest_timestamp,
                "chosen": look.chosen,
                "why": look.why,
            }
            for look in told.segments
        ],
        "time_index": _index_data(told.time_index),
        "offset_index": _index_data(told.offset_index),
        "log": told.log,
        "batches": [
            {
                "position": batch.position,
                "size": batch.size,
                "base_offset": batch.base_offset,
                "last_offset": batch.last_offset,
                "max_timestamp": batch.max_timestamp,
                "opened": batch.opened,
            }
            for batch in told.batches
        ],
        "bytes_touched": told.bytes_touched,
        "bytes_without_index": told.bytes_without_index,
        "remark": told.remark or None,
    }


def _index_data(look: IndexLook | None) -> dict[str, Any] | None:
    if look is None:
        return None
    return {
        "file": look.file,
        "entries": look.entries,
        "target": look.target,
        "slot": None if look.slot < 0 else look.slot,
        "found": look.found._asdict(),
        "probes": [
            {"slot": probe.slot, "page": probe.page, "half": "hot" if probe.half == "warm" else "cold"}
            for probe in look.probes
        ],
    }
