"""``kidx dump`` against the releases' own ``kafka-dump-log``: the same lines on stdout and on stderr."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_ci import all_but
from kafka_dump import kafka_dump

from kidx.dialect import dialect_of
from kidx.dump import Dump, Options
from kidx.dump.indexes import IndexOptions
from kidx.dump.logs import LogOptions
from kidx.errors import KidxError

pytestmark = pytest.mark.jvm

LOG_OPTIONS = {
    (): LogOptions(),
    ("--deep-iteration",): LogOptions(deep=True),
    ("--print-data-log",): LogOptions(deep=True, print_data=True),
}
SKIPPING = {
    ("--skip-record-metadata", "--print-data-log"): LogOptions(deep=True, print_data=True, skip_metadata=True),
    ("--skip-record-metadata", "--deep-iteration"): LogOptions(deep=True, skip_metadata=True),
}
INDEX_OPTIONS = {
    (): IndexOptions(),
    ("--index-sanity-check",): IndexOptions(sanity_only=True),
    ("--verify-index-only",): IndexOptions(verify_only=True),
}
# One for each set of words; all 25 that have the tool agreed when the words were written (4.4.0's is not published).
RELEASES = ("2.4.0", "2.4.1", "2.7.2", "2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.4.1", "3.5.2", "3.9.2", "4.2.1", "4.3.1")
SINCE_SKIPPING = RELEASES.index("2.8.2")


def ours(release: str, paths: list[Path], options: Options) -> tuple[list[str], list[str], bool]:
    """Lines on stdout, lines on stderr, and whether the dump broke off."""
    dump = Dump(dialect_of(release), options)
    lines: list[str] = []
    complaints: list[str] = []
    try:
        for path in paths:
            for entry in dump.file(str(path)):
                (complaints if entry.is_complaint else lines).append(entry.line())
    except (KidxError, OSError):
        return "\n".join(lines).split("\n"), [], True
    return "\n".join(lines).split("\n"), [*complaints, *dump.mismatch_lines()], False


def theirs(release: str, paths: list[Path], arguments: tuple[str, ...]) -> tuple[list[str], list[str], bool]:
    dumped = kafka_dump(release, "--files", ",".join(map(str, paths)), *arguments)
    complaints = [] if dumped.error else dumped.stderr.split("\n")[:-1]
    return dumped.stdout.split("\n")[:-1], complaints, dumped.error is not None


@pytest.mark.parametrize("release", all_but(("2.4.1", "3.9.2", "4.3.1"), RELEASES))
def test_every_line_is_kafkas(release, specimens):
    log_options = LOG_OPTIONS | (SKIPPING if RELEASES.index(release) >= SINCE_SKIPPING else {})
    compared = 0
    for directory in specimens:
        for path in sorted(directory.iterdir()):
            asked = (
                {arguments: Options(log=options) for arguments, options in log_options.items()}
                if path.suffix == ".log"
                else {arguments: Options(options) for arguments, options in INDEX_OPTIONS.items()}
            )
            for arguments, options in asked.items():
                expected = theirs(release, [path], arguments)
                assert ours(release, [path], options) == expected, f"{release} {directory.name}/{path.name} {arguments}"
                compared += len(expected[0])
    assert compared > 2_000


@pytest.mark.parametrize("release", ["2.4.1", "3.9.2", "4.3.1"])
def test_several_files_are_dumped_in_one_run(release, specimens):
    damaged = specimens[4]
    paths = [damaged / f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")]
    assert ours(release, paths, Options()) == theirs(release, paths, ())
