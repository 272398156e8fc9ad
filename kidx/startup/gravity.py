"""Results of a verification for programs: its gravity, a text file for Prometheus, and a line for Nagios."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from kidx.findings import HARMLESS, SEVERITY
from kidx.printable import printable
from kidx.startup.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kidx.findings import Verdict
    from kidx.startup.start import Start
    from kidx.verify import Verification

Gravity = Literal["start", "loss", "broken", "sound-only", "remark"]
"""The worst first. *start*: a start would do harm, or its effect is unknown; *loss*: records were lost before, and
nothing explains it; *broken*: a file is broken, missing or unreadable; *sound-only*: a file is sound and not exact;
*remark*: there is a remark."""

GRAVITIES: Final[tuple[Gravity, ...]] = get_args(Gravity)
DEFAULT: Final[Gravity] = "broken"


def gravity_of(result: Verification, start: Start | None) -> Gravity | None:
    """Return the gravity of the worst finding; None if every file is exact and there is nothing to say.

    Args:
        start: prediction of the start; None without one.
    """
    found: dict[Gravity, bool] = {
        "start": start is not None and start.answer in {"no", "unknown"},
        "loss": start is not None and bool(start.lost),
        "broken": result.verdict not in HARMLESS,
        "sound-only": any(file.verdict == "sound" for file in result.files),
        "remark": bool(result.findings),
    }
    return next((gravity for gravity in GRAVITIES if found[gravity]), None)


def is_failure(result: Verification, start: Start | None, fail_on: Gravity = DEFAULT) -> bool:
    """Return True if the worst finding is at least as grave as ``fail_on``."""
    gravity = gravity_of(result, start)
    return gravity is not None and GRAVITIES.index(gravity) <= GRAVITIES.index(fail_on)


_STATES: Final = ("OK", "WARNING")
"""Words of the Nagios plugin API for the exit codes 0 and 1."""


def prometheus(result: Verification, start: Start | None, now: float) -> str:
    """Return the result in Prometheus's text format, for the textfile collector of node_exporter.

    Args:
        start: prediction of the start; None without one.
        now: time of the look, in seconds since the epoch.
    """
    return "".join(f"{line}\n" for line in _metrics(result, start, now))


def _metrics(result: Verification, start: Start | None, now: float) -> Iterator[str]:
    counts, found = sorted(result.counts().items()), result.finding_counts()
    files = {f'kind="{_label(kind)}",verdict="{verdict}"': count for (kind, verdict), count in counts}
    yield from _gauge("files", "Number of files by kind and verdict.", files)
    findings = {f'verdict="{verdict}"': found[cast("Verdict", verdict)] for verdict in SEVERITY}
    yield from _gauge("findings", "Number of findings by verdict.", findings)
    yield from _gauge("faulty_files", "Files that are broken, missing or unreadable.", {"": len(result.faulty_paths)})
    yield from _gauge("partitions", "Number of partitions that were verified.", {"": result.partitions})
    if start is not None:
        answers = {f'answer="{each}"': int(each == start.answer) for each in get_args(Answer)}
        yield from _gauge("start_answer", "Answer to: may I start the broker?", answers)
        if start.answer != "running":
            is_safe = int(start.answer.startswith("yes"))
            yield from _gauge("start_safe", "1 if a start does no harm, 0 if it does or is unknown.", {"": is_safe})
        at_risk = {"": start.records_at_risk}
        yield from _gauge("records_at_risk", "Readable records that a start would lose.", at_risk)
        lost = {"": len(start.lost)}
        yield from _gauge("partitions_with_losses", "Partitions that have lost records before.", lost)
    yield from _gauge("look_timestamp_seconds", "Time of this look, in seconds since the epoch.", {"": round(now, 3)})


def _gauge(name: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP kidx_{name} {text}"
    yield f"# TYPE kidx_{name} gauge"
    yield from (
        f"kidx_{name}{{{labels}}} {value}" if labels else f"kidx_{name} {value}" for labels, value in values.items()
    )


def _label(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def nagios(result: Verification, start: Start | None, code: int, text: str) -> str:
    """Return the line of a Nagios plugin: state, text, and performance data.

    Args:
        start: prediction of the start; None without one.
        code: exit code: 0 or 1.
        text: verdict in one line.
    """
    data: Counter[str] = Counter(files=result.counts().total(), faulty=len(result.faulty_paths))
    if start is not None:
        data.update(records_at_risk=start.records_at_risk, lost_partitions=len(start.lost))
    return nagios_line(_STATES[code], text, data)


def nagios_line(state: str, text: str, data: Mapping[str, int]) -> str:
    """Return a line of a Nagios plugin; a bar in the text would end it."""
    performance = " ".join(f"{name}={value}" for name, value in data.items())
    return f"KIDX {state} - {text.replace('|', '/')}" + (f" | {performance}" if performance else "")
