"""Study of brokers with tiered storage: their responses, and starts with a corrupt cache of remote index files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from conformance.errors import ToolError
from conformance.report.markdown_escape import table
from conformance.studies.study import BrokerRelease, OneBrokerStudy, Request
from conformance.verdict import Comparison, combined
from kidx.dialect import version_of

if TYPE_CHECKING:
    from conformance.operations import Json
    from conformance.studies.tiers.experiment import AnswerCounts, Tried
    from conformance.studies.tiers.prepared import Case

_LEGEND: Final = """\
A broker copied segments to a remote tier (Kafka's `LocalTieredStorage`) and deleted them locally. The tables show its
responses across both tiers, and the next start after a corruption of its cache of remote index files. `kidx verify`
predicted each start; a cell in bold was not predicted. *N of M*: lookups by time with the correct response after the
start.
"""
_SKIPPED: Final = "a time whose record is in a later remote segment than the first candidate"

_COUNTS: Final = """\
The wire machine's topics, with local retention of one byte. Responses to ListOffsets were compared with Kafka's rules
(-3 to -6) or with kidx, only while the local log start was above the log start. A divergence is one that no clause
explains. Made by:
"""
_COUNTED: Final = {
    "answers": "responses across tiers",
    "topics": "topics",
    "steps": "steps",
    "segments": "remote segments",
    "divergences": "divergences",
    "seed": "seed",
    "seconds": "seconds",
}.items()


class Options(msgspec.Struct, frozen=True):
    """Options of the study.

    Attributes:
        answers: number of responses to compare instead of starts.
        only: text in the names of the cases.
    """

    answers: Annotated[
        int | None,
        msgspec.Meta(
            ge=1, title="N", description="Compare N responses across tiers instead; --report adds the counts."
        ),
    ] = None
    only: Annotated[str | None, msgspec.Meta(title="TEXT", description="Only cases whose names contain TEXT.")] = None


class Tiers(OneBrokerStudy["Tried | AnswerCounts"]):
    """A broker with a remote tier answers lookups, and starts with a corrupt cache; or it answers a machine."""

    name = "tiers"
    help = """Query brokers with tiered storage for offsets, and start them with a corrupt cache of remote index files.

    With --answers, a state machine drives topics instead, and every response to ListOffsets is compared.
    Each broker keeps its remote tier in a local directory, with Kafka's own test jar. Exit code 0: every start is as
    `kidx verify` predicts it, and every response is explained, 1: not, 2: could not run, or compared nothing,
    3: --max-time ended --answers early; --seed and --max-time are for --answers.

    Example: `conformance tiers --kafka 4.3.1 --report out/tiers`
    """
    takes = ("kafka", "seed", "max_time", "report", "allow_incomplete", "as_json", "quiet")
    options, seed = Options, None
    report, title, rows_name, unit = "tiered", "Tiered storage", "releases", "comparisons"
    releases = ("3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")  # the last release of each series from 3.9 on
    merges = True

    def check(self, request: Request, earlier: Sequence[Json] | None) -> None:
        unknown = [release for release in request.releases if release not in self.releases]
        if unknown:
            known = ", ".join(self.releases)
            raise ToolError(f"no test jar is locked for Kafka {', '.join(unknown)}; choose from {known}")
        if not _chosen(request):
            raise ToolError(f"no case has {request.options.only!r} in its name")
        if request.options.answers is not None and earlier is not None:
            missing = sorted(set(request.releases) - {row["release"] for row in earlier})
            if missing:
                raise ToolError(
                    f"the report has no results of Kafka {', '.join(missing)}; run the command without --answers first"
                )

    def look(self, bench: BrokerRelease, case: Request) -> Iterator[Tried | AnswerCounts]:
        from conformance.studies.tiers.experiment import answer_release, try_release  # noqa: PLC0415 -- of an extra

        answers = case.options.answers
        if answers is None:
            yield try_release(bench.release, _chosen(case), case.show)
        else:
            case.show(f"seed {case.seed}")
            yield answer_release(bench.release, answers, case.seed, case.show, case.seconds)

    def count(self, row: Json) -> int:
        return len(row["starts"]) if "starts" in row else int(row["answers"])

    def wrong(self, row: Json) -> list[str | None]:
        if "starts" in row:
            return [None for start in row["starts"] if not start["as_predicted"]]
        return [None for _ in row["divergences"]]

    def comparison(self, rows: Sequence[Json]) -> Comparison:
        counted = [row for row in rows if "starts" not in row]
        gaps = tuple(
            f"{row['wanted'] - row['answers']} of {row['wanted']} responses of Kafka {row['release']} not compared"
            " (--max-time)"
            for row in counted
            if row["answers"] < row["wanted"]
        )
        idle = tuple(f"Kafka {row['release']}: no response was compared" for row in counted if not row["answers"])
        return combined([super().comparison(rows), Comparison(0, gaps=gaps, idle=idle)])

    def merged(self, earlier: Sequence[Json], rows: Sequence[Json], request: Request) -> list[Json]:
        """Return the objects of the releases, or the earlier objects with the new counts.

        Earlier results about other corruptions are omitted, because a table has one row for each corruption.
        """
        if request.options.answers is not None:
            counted = {row["release"]: {"answers": row} for row in rows}
            return [each | counted.get(each["release"], {}) for each in earlier]
        kept = {each["release"]: each for each in earlier if _corruptions(each) == _corruptions(rows[0])}
        kept |= {row["release"]: kept.get(row["release"], {}) | row for row in rows}
        return sorted(kept.values(), key=lambda each: version_of(each["release"]))

    def page(self, rows: Sequence[Json], command: str) -> str:
        """Return a table of responses, one of starts and one of counts, with a column per release, the last first."""
        if not all("starts" in row for row in rows):
            return "".join(f"{row['release']}: {_counts(row)}\n" for row in rows)
        rows = rows[::-1]
        lines = [[target, *(row["special"][target] for row in rows)] for target in (rows[0]["special"] if rows else ())]
        lines.append(["times, correct responses", *("{} of {}".format(*row["lookups"]) for row in rows)])
        lines.append([_SKIPPED, *("{answer} (the record: {expected})".format(**row["skipped"]) for row in rows)])
        starts = zip(*(row["starts"] for row in rows), strict=True)
        damaged = [[f"`{some[0]['damage']}`", *map(_cell, some)] for some in starts]
        text = [_LEGEND, *_table("query", rows, lines), "", *_table("damage", rows, damaged)]
        counted = [row for row in rows if "answers" in row]
        if counted:
            lines = [[name, *(_text(key, row["answers"]) for row in counted)] for key, name in _COUNTED]
            commands = dict.fromkeys(f"- {row['answers']['provenance']}" for row in reversed(counted))
            text += ["", _COUNTS, *commands, "", *_table("count", counted, lines)]
        return "\n".join(text) + "\n"


def _chosen(request: Request) -> list[Case]:
    from conformance.studies.tiers.prepared import CASES  # noqa: PLC0415 -- part of an extra

    return [case for case in CASES if request.options.only is None or request.options.only in case.name]


def _corruptions(row: Mapping[str, Any]) -> list[str]:
    return [start["damage"] for start in row["starts"]]


def _counts(counts: Json) -> str:
    return ", ".join(f"{text} {_text(name, counts)}" for name, text in _COUNTED)


def _text(name: str, counts: Json) -> str:
    value = counts[name]
    if isinstance(value, dict):
        return "; ".join(f"{shape} ({times})" for shape, times in value.items()) or "0"
    return str(value) if name == "seed" else f"{value:,}"


def _cell(start: Json) -> str:
    happened = f"{start['happened']}: {start['answers']}" if start["answers"] else start["happened"]
    return happened if start["as_predicted"] else f"**{happened}** (predicted: {start['predicted']})"


def _table(first: str, rows: Sequence[Json], lines: Iterable[list[str]]) -> list[str]:
    return table([first, *(row["release"] for row in rows)], lines, numbers=1 + len(rows))


TIERS: Final = Tiers()
