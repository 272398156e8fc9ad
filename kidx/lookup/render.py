"""Renderer of explanations, as text for the terminal and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kidx.layout import PAGE_BYTES
from kidx.printable import counted, dated

if TYPE_CHECKING:
    from kidx.lookup.explain import Explanation, IndexVisit, SegmentVisit

_WIDTH: Final = 60
_MAX_LISTED: Final = 8
"""Maximum number of segments or batches that are listed; of more, only the first and the last are listed."""


def render(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of the text. Marks carry the meaning, not colours, so that nothing is lost in a pipe."""
    target = dated(explanation.target) if explanation.kind == "timestamp" else explanation.target
    yield f"looking for {explanation.kind} {target}"
    yield from _segments(explanation)
    for name, visit in (("time index", explanation.time_index), ("offset index", explanation.offset_index)):
        if visit is not None:
            yield from _index(name, visit)
    if explanation.log is not None:
        yield from _log(explanation)
    yield ""
    if explanation.answer is None:
        yield "answer        none"
    else:
        timestamp, offset, leader_epoch = explanation.answer
        epoch = "none" if leader_epoch is None else leader_epoch
        yield f"answer        offset {offset}, timestamp {dated(timestamp)}, leader epoch {epoch}"
    yield f"bytes touched {explanation.bytes_touched:,}; without the indexes {explanation.bytes_without_index:,}"


def _segments(explanation: Explanation) -> Iterator[str]:
    yield ""
    if not explanation.segments:
        yield "segments      none contains the target, which is outside the log"
        return
    yield "segments"
    for visit in _some(explanation.segments):
        if visit is None:
            yield "   …"
        else:
            yield f" {'▶' if visit.chosen else '·'} {visit.base_offset:020d}  {_tier(visit)}{visit.why}"
    if explanation.remark:
        yield f"   note: {explanation.remark}"


def _tier(visit: SegmentVisit) -> str:
    return "" if visit.tier is None else f"{visit.tier}: "


def _index(name: str, visit: IndexVisit) -> Iterator[str]:
    yield ""
    pages = -(-visit.entries * visit.entry_size // PAGE_BYTES)
    content = f"{counted(visit.entries, 'entry')} on {counted(pages, 'page')}"
    yield f"{name:<13} {visit.file}: {content}, looking for {visit.target}"
    if visit.entries:
        yield f"   [{_bar(visit, pages)}]  ○ cold page, ● warm page, ◆ where the entry lies"
    for number, probe in enumerate(visit.probes, 1):
        yield f"   {number:>2}. slot {probe.slot:,}  page {probe.page:,}  {probe.section}"
    found = " ".join(
        f"{field} {dated(value) if field == 'timestamp' else value}"
        for field, value in zip(visit.found._fields, visit.found, strict=True)
    )
    yield f"   → {f'slot {visit.slot:,}: ' if visit.slot >= 0 else 'no entry at or before the target: '}{found}"


def _bar(visit: IndexVisit, pages: int) -> str:
    width = min(_WIDTH, pages)
    marks = ["·"] * width

    def at(page: int) -> int:
        return page * width // pages

    for probe in visit.probes:
        marks[at(probe.page)] = "●" if probe.section == "warm" else "○"
    if visit.slot >= 0:
        marks[at(visit.slot * visit.entry_size // PAGE_BYTES)] = "◆"
    return "".join(marks)


def _log(explanation: Explanation) -> Iterator[str]:
    yield ""
    yield f"log           {explanation.log}: {counted(explanation.log_size, 'byte')}"
    if explanation.batches and explanation.log_size:
        start, end = explanation.batches[0].position, explanation.batches[-1].position + explanation.batches[-1].size
        left = start * _WIDTH // explanation.log_size
        right = max(left + 1, min(_WIDTH, -(-end * _WIDTH // explanation.log_size)))
        yield f"   [{'·' * left}{'█' * (right - left)}{'·' * (_WIDTH - right)}]  █ read: bytes {start:,} to {end:,}"
    for batch in _some(explanation.batches):
        if batch is None:
            yield "   …"
        else:
            yield (
                f" {'▶' if batch.opened else '·'} at {batch.position:,}: {counted(batch.size, 'byte')}, offsets"
                f" {batch.base_offset}–{batch.last_offset}, largest timestamp {dated(batch.max_timestamp)}"
                f"{'' if batch.opened else ', only its header read'}"
            )


def _some(items: list[Any]) -> list[Any]:
    if len(items) <= _MAX_LISTED:
        return items
    return [*items[: _MAX_LISTED // 2], None, *items[-_MAX_LISTED // 2 :]]


def as_data(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as plain data for ``--json``."""
    return {
        "segments": [
            {
                "base_offset": visit.base_offset,
                "largest_timestamp": visit.largest_timestamp,
                "chosen": visit.chosen,
                "why": visit.why,
            }
            | ({} if visit.tier is None else {"tier": visit.tier})
            for visit in explanation.segments
        ],
        "time_index": _index_data(explanation.time_index),
        "offset_index": _index_data(explanation.offset_index),
        "log": explanation.log,
        "batches": [
            {
                "position": batch.position,
                "size": batch.size,
                "base_offset": batch.base_offset,
                "last_offset": batch.last_offset,
                "max_timestamp": batch.max_timestamp,
                "opened": batch.opened,
            }
            for batch in explanation.batches
        ],
        "bytes_touched": explanation.bytes_touched,
        "bytes_without_index": explanation.bytes_without_index,
        "remark": explanation.remark or None,
    }


def _index_data(visit: IndexVisit | None) -> dict[str, Any] | None:
    if visit is None:
        return None
    return {
        "file": visit.file,
        "entries": visit.entries,
        "target": visit.target,
        "slot": None if visit.slot < 0 else visit.slot,
        "found": visit.found._asdict(),
        "probes": [
            {"slot": probe.slot, "page": probe.page, "half": "hot" if probe.section == "warm" else "cold"}
            for probe in visit.probes
        ],
    }
