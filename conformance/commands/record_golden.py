"""``conformance record-golden``: recording of a real broker's segments and responses, for checks without a broker."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from conformance.commands.options import BrokerChoice, BrokerOption, JsonOption, QuietOption, echo
from conformance.kafka.progress import show_progress
from conformance.kafka.releases import load_release
from conformance.verdict import Comparison

if TYPE_CHECKING:
    from conformance.experiments.golden import Corpus


def record_golden_command(
    kafka: Annotated[str, typer.Option("--kafka", metavar="RELEASE", help="Release whose broker is started.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory, or one with a corpus to replace.")],
    seed: Annotated[int, typer.Option(help="Random seed; a fixed seed produces the same records.")] = 0,
    packed: Annotated[bool, typer.Option("--pack", help="Also write DIR.tar.xz.")] = False,
    broker: BrokerOption = BrokerChoice.auto,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Record a golden corpus: a small set of a broker's segments, and its responses to queries about them.

    The corpus is checked immediately, as in the offline tests. Exit code 0: kidx agrees, 1: it does not, 2: nothing was
    recorded.

    Example: `conformance record-golden --kafka 3.9.2 --out tests/golden/3.9.2 --pack`
    """
    from conformance.experiments.golden import CHECKS, judge, record  # noqa: PLC0415 -- numpy is not for --help
    from conformance.experiments.golden.corpus import pack  # noqa: PLC0415 -- the same

    release = load_release(kafka).name

    def show(line: str) -> None:
        if not (as_json or quiet):
            echo(line)

    with show_progress(f"Kafka {release}") as progress:
        corpus = record(release, out, seed=seed, broker=broker.value, progress=progress, on_activity=show)
    if packed:
        pack(corpus.directory)
    findings = [finding for check in CHECKS.values() for finding in check(corpus)]
    verdicts = list(judge(corpus))
    compared = Comparison(_answers(corpus) + len(verdicts), len(findings))
    if as_json:
        document = {
            "verdict": compared.conclusion,
            "release": release,
            "mode": corpus.mode,
            "directory": str(corpus.directory),
            "files": len(_files(corpus)),
            "bytes": _size(corpus),
            "answers": _answers(corpus),
            "indexes": [
                {"file": each.file, "verdict": each.verdict, "why_not_exact": each.why_not_exact or None}
                for each in verdicts
            ],
            "findings": [finding._asdict() for finding in findings],
        }
        typer.echo(json.dumps(document))
        return compared.settle()
    for finding in findings:
        echo(str(finding))
    counts = Counter(each.verdict for each in verdicts)
    indexes = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    size, files, answers = decimal(_size(corpus)), len(_files(corpus)), _answers(corpus)
    echo(f"{release}: {files} files, {size}, {answers} answers in {out}; indexes: {indexes}")
    return compared.settle()


def _files(corpus: Corpus) -> list[Path]:
    return [path for path in corpus.directory.rglob("*") if path.is_file()]


def _size(corpus: Corpus) -> int:
    return sum(path.stat().st_size for path in _files(corpus))


def _answers(corpus: Corpus) -> int:
    return sum(len(rows) for partition in corpus.partitions for rows in partition.answers.values())
