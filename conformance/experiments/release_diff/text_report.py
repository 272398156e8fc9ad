"""Reports of a comparison of two Kafka releases.

A difference as text has its clauses, changes, steps, and replay commands. The comparison as a whole is JSON, Markdown
for a comment on a pull request, or a stream of events for ``conformance report``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version as version_of_package
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses import load_clauses
from conformance.events import Diverged, Result, RunFinished, RunStarted
from conformance.experiments.release_diff.error_texts import TextChange
from conformance.experiments.release_diff.expected import signature_text
from conformance.experiments.release_diff.sides import PROFILE
from conformance.lockstep.divergence import failure_json
from conformance.operations.shortened import shortened
from conformance.operations.state_diff import differing_fields
from conformance.operations.trace import Trace
from conformance.report.divergence import format_value
from conformance.runs.divergence_event import requirements_of
from conformance.runs.divergences.signatures import signature_of
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, TIME_INDEX
from kidx.printable import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.events import Event
    from conformance.experiments.release_diff.comparison import Comparison, Difference
    from conformance.experiments.release_diff.error_texts import ImplicatedClauses
    from conformance.experiments.release_diff.expected import ClassifiedDifferences
    from conformance.experiments.release_diff.sides import Side
    from conformance.operations import Json, Outcome
    from conformance.verdict import Conclusion

_LAYOUTS: Final = {".index": OFFSET_INDEX, ".timeindex": TIME_INDEX, ".txnindex": ABORTED_TXN}


def describe(difference: Difference) -> str:
    """Return the text of a difference, which ends with both replay commands."""
    old, new = (record.side.label for record in (difference.old, difference.new))
    last = difference.operations[-1]
    lines = [f"{difference.machine} machine: {headline(difference)}", ""]
    lines += _clauses(difference.implicated.old, old) + _clauses(difference.implicated.new, new)
    if not difference.implicated.families:
        lines.append("  clause       no clause separates the two releases here: a finding")
        lines.append(f"  {_label('signature')}{signature_of(difference.divergence)}")
    lines += [f"  {_label(aspect)}{text}" for aspect, text in changes(difference)]
    lines += ["", "  steps"]
    for number, (operation, seen) in enumerate(zip(difference.operations, difference.old.observations, strict=False)):
        if number < len(difference.operations) - 1:
            answer = "" if seen is None else f"  →  {format_outcome(seen.outcome)}"
            lines.append(f"    {number + 1:3}  {shortened(operation)}{answer}")
    lines.append(f"  > {len(difference.operations):3}  {shortened(last)}")
    last_seen = (record.observations[-1] for record in (difference.old, difference.new))
    lines += _in_columns(old, new, *("" if seen is None else format_outcome(seen.outcome) for seen in last_seen))
    if elsewhere := places(difference):
        lines += ["", f"  {_label('also in')}{elsewhere}"]
    lines += [f"  {_label('see also')}{trace}" for trace in difference.more]
    if difference.unobserved:
        text = f"{', '.join(difference.unobserved)}; the consequences count nevertheless"
        lines.append(f"  {_label('from then on')}not compared: {text}")
    lines += [f"  {record.side.label} differs from kidx in its own dialect" for record in _diverging(difference)]
    return "\n".join([*lines, "", *_replay_lines(difference.trace, difference.old.side, difference.new.side)])


def headline(difference: Difference) -> str:
    """Return a one-sentence summary of the difference."""
    old, new = (record.side.label for record in (difference.old, difference.new))
    name = difference.operations[-1].name
    before, after = (record.observations[-1] for record in (difference.old, difference.new))
    if "outcome" in difference.divergence.aspects and before is not None and after is not None:
        return f"{name} {_does(before.outcome)} in {old} and {_does(after.outcome)} in {new}"
    text = dict(changes(difference))
    what = text.get("files") or text.get("state") or "something that did not occur again"
    return f"after {name}, {what} (from {old} to {new})"


def changes(difference: Difference) -> Iterator[tuple[str, str]]:
    """Yield each aspect in which the releases differ, with the change as text."""
    before, after = (record.observations[-1] for record in (difference.old, difference.new))
    if before is not None and after is not None:
        if before.outcome[:2] != after.outcome[:2]:
            yield "outcome", f"{format_outcome(before.outcome)} → {format_outcome(after.outcome)}"
        if before.state != after.state:
            yield "state", "; ".join(_fields(before.state, after.state))
    if "bytes" in difference.divergence.aspects and difference.old.files != difference.new.files:
        yield "files", "; ".join(_files(difference.old.files, difference.new.files))


def places(difference: Difference) -> str:
    """List the other machines and operations with this difference."""
    by_machine: dict[str, dict[str, None]] = {}
    here = difference.machine, difference.operations[-1].name
    for machine, operation, _ in difference.also:
        if (machine, operation) == here:
            continue
        by_machine.setdefault(machine, {})[operation] = None
    return "; ".join(f"{machine} machine: {', '.join(names)}" for machine, names in by_machine.items())


def describe_texts(comparison: Comparison, *, verbose: bool) -> str:
    """Describe all errors whose texts differ, in one entry with one example, or with all examples if ``verbose``."""
    texts, (old, new) = comparison.texts, comparison.plan.sides
    machines = ", ".join(dict.fromkeys(change.machine for change in texts))
    lines = [f"texts of {len(texts)} error{'s' * (len(texts) != 1)} changed ({machines})"]
    claimed = [implicated for implicated in dict.fromkeys(change.implicated for change in texts) if implicated.families]
    lines += [f"  {_sides(implicated)}" for implicated in claimed]
    if unclaimed := sum(not change.implicated.families for change in texts):
        lines.append(f"  {unclaimed} that no clause covers: findings")
    for number, change in enumerate(texts if verbose else texts[:1]):
        lines += ["", *_example(number, change, old, new)]
    if not verbose and len(texts) > 1:
        lines += ["", "  -v shows an example of each"]
    return "\n".join(lines)


def format_outcome(outcome: Outcome) -> str:
    """Format the outcome of an operation."""
    return str(outcome) if outcome.error is not None else format_value(outcome.value)


def _example(number: int, change: TextChange, old: Side, new: Side) -> list[str]:
    return [
        f"  text {number + 1}: {change.operations[-1].name} raised {change.wording.error}, {_sides(change.implicated)}",
        *(f"    {n + 1:3}  {shortened(operation)}" for n, operation in enumerate(change.operations)),
        *_in_columns(old.label, new.label, change.wording.old, change.wording.new),
        *_replay_lines(change.trace, old, new),
    ]


def _replay_lines(trace: Path, old: Side, new: Side) -> list[str]:
    return [
        f"  {_label('trace')}{trace}",
        f"  {_label('replay')}{old.replay(trace)}",
        f"  {_label('')}{new.replay(trace)}",
    ]


def _sides(implicated: ImplicatedClauses) -> str:
    return " → ".join(", ".join(side) or "no clause" for side in implicated)


def _label(name: str) -> str:
    return f"{name:11}  "


def _in_columns(old: str, new: str, old_said: str, new_said: str) -> list[str]:
    """Return two lines with the texts of both sides, aligned after the names of the sides."""
    width = max(7, len(old), len(new))
    return [f"         {name:{width}} {text}" for name, text in ((old, old_said), (new, new_said))]


def _clauses(ids: Iterable[str], release: str) -> list[str]:
    catalogue = load_clauses()
    return [f"  {_label(release)}{id_} ({catalogue[id_].level}): {catalogue[id_].statement}" for id_ in ids]


def _diverging(difference: Difference) -> list[Any]:
    return [record for record in (difference.old, difference.new) if not record.conforms]


def _does(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"raises {outcome.error}"
    return "is done" if outcome.value is None else f"returns {format_value(outcome.value)}"


def _fields(old: Any, new: Any) -> Iterator[str]:
    for name, before, after in differing_fields(old, new):
        yield f"{name or 'state'} {format_value(before)} → {format_value(after)}"


def _files(old: dict[str, bytes], new: dict[str, bytes]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None or after is None:
            there = "missing" if after is None else f"{len(after)} bytes"
            yield f"{name} {'missing' if before is None else f'{len(before)} bytes'} → {there}"
            continue
        sizes = f"{len(before)} bytes → {len(after)} bytes" if len(before) != len(after) else f"{len(before)} bytes"
        yield f"{name} {sizes}{_first_difference(name, before, after)}"


def _first_difference(name: str, old: bytes, new: bytes) -> str:
    """Describe the first differing entry, or byte of a log; empty if one file is only longer than the other."""
    pairs = zip(old, new, strict=False)
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    if first is None:
        return ""
    layout = next((layout for suffix, layout in _LAYOUTS.items() if suffix in name), None)
    if layout is None:
        return f", first different at byte {first}"
    slot, start = first // layout.size, first - first % layout.size
    if start + layout.size > min(len(old), len(new)):
        return f", first different in slot {slot}"
    before, after = layout.struct.unpack_from(old, start), layout.struct.unpack_from(new, start)
    return f", first different in slot {slot}: {before} → {after}"


_WORDS: Final[dict[Conclusion, str]] = {
    "diverges": "differs",
    "conforms": "same",
    "incomplete": "incomplete",
    "nothing-compared": "nothing-compared",
}


def to_json(comparison: Comparison) -> Json:
    """Return the document that ``conformance diff --json`` prints: verdict, differences, texts, and totals."""
    plan = comparison.plan
    return {
        "verdict": _WORDS[comparison.compared(int(comparison.differs)).conclusion],
        "old": plan.old,
        "new": plan.new,
        "machines": list(plan.machines),
        "seed": plan.seed,
        "differences": [_difference(difference) for difference in comparison.differences],
        "texts": [_text(change, plan.sides) for change in comparison.texts],
        "examples": comparison.examples,
        "steps": comparison.steps,
        "seconds": comparison.seconds,
        "traces_not_executed": comparison.not_replayed,
        "missing": list(comparison.missing),
    }


def _difference(difference: Difference) -> Json:
    answers = zip(difference.old.observations, difference.new.observations, strict=False)
    return {
        "machine": difference.machine,
        "headline": headline(difference),
        "operation": difference.divergence.operation.name,
        "aspects": list(difference.divergence.aspects),
        "changes": dict(changes(difference)),
        "clauses": _clause_ids(difference.implicated),
        "steps": [operation.to_json() for operation in difference.operations],
        "answers": [
            [None if seen is None else seen.outcome.to_json() for seen in (before, after)] for before, after in answers
        ],
        "unobserved": list(difference.unobserved),
        "also": [{"machine": machine, "operation": name, "aspects": list(of)} for machine, name, of in difference.also],
        "more": [str(trace) for trace in difference.more],
        "conforms": {record.side.label: record.conforms for record in (difference.old, difference.new)},
        **_trace(difference.trace, (difference.old.side, difference.new.side)),
    }


def _text(change: TextChange, sides: Sequence[Side]) -> Json:
    return {
        "machine": change.machine,
        "operation": change.operations[-1].name,
        "error": change.wording.error,
        "texts": [change.wording.old, change.wording.new],
        "clauses": _clause_ids(change.implicated),
        "steps": [operation.to_json() for operation in change.operations],
        **_trace(change.trace, sides),
    }


def _clause_ids(implicated: ImplicatedClauses) -> Json:
    catalogue = load_clauses()
    return {
        side: [{"id": id_, "level": catalogue[id_].level, "statement": catalogue[id_].statement} for id_ in ids]
        for side, ids in implicated._asdict().items()
    }


def _trace(path: Path, sides: Sequence[Side]) -> Json:
    return {
        "id": Trace.load(path).id,
        "trace": str(path),
        "replay": [side.replay(path) for side in sides],
    }


_MAX_LENGTH = 200
"""Maximum number of characters in a cell of the table."""


def to_markdown(comparison: Comparison, classified: ClassifiedDifferences | None) -> str:
    """Return the verdict, a table with a row for each difference, and the steps of each, which are folded.

    Args:
        classified: The expected differences, or None without expectations.
    """
    old, new = (side.label for side in comparison.plan.sides)
    lines = [f"### conformance diff: {_cell(old)} → {_cell(new)}", "", _verdict(comparison, classified), ""]
    if comparison.all:
        expected = () if classified is None else classified.expected
        lines += ["| | machine | difference | clauses or signature |", "| --- | --- | --- | --- |"]
        lines += [_row(one, "expected" if any(one is other for other in expected) else "new") for one in comparison.all]
        lines.append("")
    if classified is not None and classified.stale:
        lines += ["Entries that no difference matches:", "", *(f"* {_cell(str(e))}" for e in classified.stale), ""]
    for difference in comparison.differences:
        text = printable_lines(describe(difference)).replace("```", "'''")
        folded = f"<details><summary>{_cell(headline(difference))}</summary>"
        lines += [folded, "", "```text", text, "```", "</details>", ""]
    lines.append(f"seed {comparison.plan.seed} · {comparison.examples} examples, {comparison.steps} steps")
    return "\n".join([*lines, ""])


def _verdict(comparison: Comparison, classified: ClassifiedDifferences | None) -> str:
    if classified is None:
        return f"**{len(comparison.all)} differences**" if comparison.all else "**Nothing differs**"
    if not classified.new and not classified.stale:
        return f"**All expected**: {len(classified.expected)} differences, each with its entry"
    return f"**{len(classified.new)} new, {len(classified.stale)} stale**, {len(classified.expected)} expected"


def _row(one: Difference | TextChange, state: str) -> str:
    what = f"{one.wording.old} → {one.wording.new}" if isinstance(one, TextChange) else headline(one)
    known = ", ".join(sorted({*one.implicated.old, *one.implicated.new})) or signature_text(one)
    return f"| {state} | {one.machine} | {_cell(what)} | {_cell(known)} |"


def _cell(text: str) -> str:
    """Escape text that would end a cell or begin markup."""
    text = printable(text)
    short = text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
    for special in "\\|<>[]*_`#@":
        short = short.replace(special, f"&#{ord(special)};")
    return short


def events_of(comparison: Comparison, *, all_expected: bool) -> Iterator[Event]:
    """Yield the header, the differences, a result for each state machine, and the footer.

    Args:
        all_expected: True if all differences are expected, or nothing differs.
    """
    plan = comparison.plan
    old, new = plan.sides
    versions = {"kidx": version_of_package("kidx"), "hypothesis": version_of_package("hypothesis")}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    releases = (old.release,)
    specification = new.specification if new.is_build else f"jvm {new.release}"
    parameters = (releases, (specification,), plan.machines, PROFILE.name, "observed", plan.seed)
    yield RunStarted(*parameters, versions, now, seed_source="given")
    for difference in comparison.differences:
        yield _diverged(difference, specification)
    for machine in plan.machines:
        found = [difference for difference in comparison.differences if difference.machine == machine]
        clauses = {clause for difference in found for clause in difference.implicated.old}
        verdicts = dict.fromkeys(sorted(clauses), "diverges")
        yield Result(
            machine,
            specification,
            old.release,
            comparison.examples,
            comparison.steps,
            comparison.seconds,
            len(found),
            dict.fromkeys(verdicts, 1),
            verdicts,  # type: ignore[arg-type]
            {"compared with": old.label},
        )
    compared = comparison.compared(int(not all_expected))
    missing = {"missing": list(comparison.missing)} if comparison.missing else {}
    yield RunFinished(compared.conclusion, comparison.steps, comparison.seconds, missing)


def _diverged(difference: Difference, specification: str) -> Diverged:
    ids = (*difference.implicated.old, *difference.implicated.new)
    return Diverged(
        difference.machine,
        failure_json(difference.divergence),
        requirements_of(ids),
        tuple(map(str, difference.operations)),
        str(difference.trace),
        difference.new.side.replay(difference.trace),
        specification,
        releases=(difference.old.side.release,),
        machines=(difference.machine,),
        clause=ids[0] if ids else "",
        signature=signature_of(difference.divergence),
    )
