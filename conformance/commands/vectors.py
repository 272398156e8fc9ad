"""``conformance vectors``: writing and checking of test vectors with Kafka's own classes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import QuietOption, ReleaseOption, echo, resolve_releases
from conformance.errors import ToolError
from conformance.kafka.progress import show_progress
from conformance.verdict import Comparison, combined


def vectors_command(
    kafka: ReleaseOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the vectors here, in a directory for each release.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Repeat all queries of these vectors with Kafka's classes.")
    ] = None,
    quiet: QuietOption = False,
) -> int:
    """Write test vectors: files, and queries about them with the answers of each release's own classes.

    An implementation that only reads, in any language, can be tested with these data alone. Exit code 0: done, and
    every answer is right, 1: an answer or a file is wrong, and is printed, 2: could not run, or checked no query.

    Example: `conformance vectors --kafka 4.4.0 --out vectors --check vectors`
    """
    from conformance.experiments.vectors.cases import load_cases  # noqa: PLC0415 -- part of an extra
    from conformance.experiments.vectors.checking import check_release  # noqa: PLC0415
    from conformance.experiments.vectors.document import load_document  # noqa: PLC0415
    from conformance.experiments.vectors.writing import DOCUMENT, write_release  # noqa: PLC0415

    if out is None and check is None:
        raise ToolError("nothing to do; add --out DIR, --check DIR or both")
    checked: list[Comparison] = []
    with show_progress("Kafka's jars") as progress:
        for release in resolve_releases(kafka) if out is not None else ():
            document = write_release(out, release, load_cases(), progress)  # type: ignore[arg-type]
            if not quiet:
                asked = sum(len(vector.queries) for vector in document.vectors)
                echo(f"{release}: {len(document.vectors)} vectors, {asked} queries")
        for root in () if check is None else _roots(check, kafka):
            lines = list(check_release(root, progress))
            for line in lines:
                echo(line)
            if not quiet:
                echo(f"{root.name}: {len(lines)} wrong answers")
            vectors = load_document(root / DOCUMENT).vectors
            queries = sum(len(vector.queries) for vector in vectors)
            checked.append(Comparison(queries, len(lines), idle=() if queries else (f"{root} has no query",)))
    return combined(checked).settle() if check is not None else 0


def _roots(directory: Path, kafka: list[str] | None) -> list[Path]:
    """Return the directories of the releases, oldest first.

    Raises:
        ToolError: the directory has no vectors.
    """
    if kafka:
        roots = [directory / release for release in resolve_releases(kafka)]
    else:
        roots = sorted((path.parent for path in directory.glob("*/vectors.json")), key=_numbers)
    if not roots:
        raise ToolError(f"no vectors in {directory}; conformance vectors --out {directory} writes them")
    return roots


def _numbers(root: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", root.name)]
