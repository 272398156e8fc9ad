"""Coverage-guided fuzzing: atheris chooses the buffers from which Hypothesis draws contents.

Each format has a separate process, ``python -m conformance.studies.fuzz.coverage_guided``, because libFuzzer ends
the process when it is done, and because kidx must be instrumented when it is imported. The process uses the same corpus
and directory of traces as its parent. Once a second it writes its :class:`FuzzResult` so far to a file.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

if TYPE_CHECKING:
    from conformance.studies.fuzz.runner import FuzzResult
    from conformance.studies.study import Request

_NOT_HANDLED: Final = ("abrt", "bus", "fpe", "ill", "int", "segv", "term", "xfsz", "usr1", "usr2")
"""Signals that libFuzzer must not handle, because the JVM uses them."""


class Options(msgspec.Struct, frozen=True):
    """Options of the study.

    Attributes:
        corpus: directory with a directory for each format; None for one that all runs share.
        coverage_guided: True if atheris chooses the inputs.
    """

    corpus: Annotated[
        Path | None, msgspec.Meta(title="DIR", description="Corpus directory, reused by the next run.")
    ] = None
    coverage_guided: Annotated[bool, msgspec.Meta(description="Use coverage-guided fuzzing (needs atheris).")] = False


def has_atheris() -> bool:
    """Return True if atheris is installed."""
    return importlib.util.find_spec("atheris") is not None


def fuzz_guided(request: Request) -> list[FuzzResult]:
    """Run the formats, each in a separate process.

    Raises:
        ToolError: A process failed.
    """
    from conformance.errors import ToolError  # noqa: PLC0415 -- the child must not import kidx this early
    from conformance.studies.fuzz.runner import FuzzResult  # noqa: PLC0415

    results = []
    for format_name in request.machines:
        with tempfile.TemporaryDirectory(prefix="kidx-fuzz-") as directory:
            status = Path(directory) / "status.json"
            task = {
                "format": format_name,
                "releases": request.releases,
                "implementations": request.implementations,
                "corpus": str(request.options.corpus),
                "findings": str(request.directory),
                "seed": request.seed,
                "seconds": (request.seconds or 0) / len(request.machines),
                "status": str(status),
            }
            command = [sys.executable, "-m", "conformance.studies.fuzz.coverage_guided", json.dumps(task)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- ourselves
            if not status.exists():
                reason = done.stderr.strip().splitlines()[-1:] or ["it wrote nothing"]
                raise ToolError(f"guided fuzzing of the format {format_name!r} failed: {reason[0]}")
            fields = json.loads(status.read_text("utf-8"))
        results.append(FuzzResult(**fields | {"flips": Counter(fields["flips"])}))
    return results


def main(task: dict[str, Any]) -> None:
    """Fuzz one format in the child process, which libFuzzer ends.

    Args:
        task: The format, members of the request, and the file for its result.
    """
    import atheris  # noqa: PLC0415 -- an optional package

    with atheris.instrument_imports(include=["kidx"]):
        import kidx.log  # noqa: PLC0415
        import kidx.segment  # noqa: F401, PLC0415
    from conformance.studies.fuzz.runner import fuzz_format  # noqa: PLC0415
    from conformance.studies.study import Request  # noqa: PLC0415

    corpus, format_name, status = Path(task["corpus"]), task["format"], Path(task["status"])
    request = Request(
        (format_name,),
        task["seed"],
        None,
        task["seconds"],
        Path(task["findings"]),
        Options(corpus),
        releases=tuple(task["releases"]),
        implementations=tuple(task["implementations"]),
    )
    started: list[FuzzResult] = []

    def choose_inputs(fuzz_one: Callable[[bytes], object], seconds: float) -> None:
        began = written = time.monotonic()

        def one(buffer: bytes) -> None:
            nonlocal written
            fuzz_one(buffer)
            now = time.monotonic()
            if now - written > 1:
                written = now
                started[0].seconds = now - began
                status.write_text(json.dumps(started[0].to_json()), "utf-8")

        buffers = corpus / f"{format_name}-buffers"
        buffers.mkdir(parents=True, exist_ok=True)
        options = [f"-handle_{name}=0" for name in _NOT_HANDLED]
        options += [f"-max_total_time={max(2, int(seconds))}", f"-seed={request.seed + 1}", "-verbosity=0"]
        atheris.Setup([sys.argv[0], str(buffers), *options, "-timeout=0", "-rss_limit_mb=0"], one)
        atheris.Fuzz()

    fuzz_format(request, format_name, task["seconds"], choose_inputs=choose_inputs, on_start=started.append)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
