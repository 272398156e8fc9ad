"""``kidx dump`` against the releases' own ``kafka-dump-log``: the same lines on stdout and on stderr."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kafka_dump import kafka_dump
from thorough_params import thorough_except, thorough_param

from conformance.kafka.messages import messages_of
from kidx.dialect import dialect_of, version_of
from kidx.dump import Dump, Options
from kidx.dump.indexes import IndexOptions
from kidx.dump.internal import parser_of
from kidx.dump.logs import LogOptions
from kidx.errors import KidxError
from kidx.messages.reading import definitions
from kidx.records import build_batch
from kidx.segment import FileRecords

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
# One for each set of words, and the newest; all others agreed when the words were written.
RELEASES = (
    "2.4.0",
    "2.4.1",
    "2.7.2",
    "2.8.2",
    "3.0.2",
    "3.1.2",
    "3.2.3",
    "3.4.1",
    "3.5.2",
    "3.9.2",
    "4.2.1",
    "4.3.1",
    "4.4.0",
)
SINCE_SKIPPING = RELEASES.index("2.8.2")


INTERNAL = Path(__file__).parents[1] / "golden" / "internal"
TIERS = Path(__file__).parents[1] / "golden" / "tiers"
DECODER = {
    "__consumer_offsets-0": "offsets",
    "__transaction_state-0": "transaction-log",
    "__cluster_metadata-0": "cluster-metadata",
    "__remote_log_metadata-0": "remote-log-metadata",
}
SINCE = {"cluster-metadata": "2.8.2", "remote-log-metadata": "3.9.2"}


def ours(release: str, paths: list[Path], options: Options) -> tuple[list[str], list[str], bool]:
    """Return lines on stdout, lines on stderr, and whether the dump broke off."""
    dump = Dump(dialect_of(release), options)
    lines: list[str] = []
    complaints: list[str] = []
    try:
        for path in paths:
            for entry in dump.file(str(path)):
                (complaints if entry.is_error else lines).append(entry.line())
    except (KidxError, OSError):
        return "\n".join(lines).split("\n"), [], True
    return "\n".join(lines).split("\n"), [*complaints, *dump.mismatch_lines()], False


def theirs(release: str, paths: list[Path], arguments: tuple[str, ...]) -> tuple[list[str], list[str], bool]:
    dumped = kafka_dump(release, "--files", ",".join(map(str, paths)), *arguments)
    complaints = [] if dumped.error else dumped.stderr.split("\n")[:-1]
    return dumped.stdout.split("\n")[:-1], complaints, dumped.error is not None


@pytest.mark.parametrize("release", thorough_except(("2.4.1", "3.9.2", "4.3.1"), RELEASES))
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


def damaged(path: Path, target: Path) -> Path:
    """Return the records of a log, a batch each, most with a key or a value that is truncated, longer, or changed."""
    drawn = random.Random(path.parent.name)  # noqa: S311
    batches = []
    for batch in FileRecords(path, writable=False, dialect=dialect_of("4.3.1")).batches():
        for record in () if batch.is_control else batch:
            parts = [record.key, record.value]
            place = drawn.choice((0, 1, 1, 1))
            data = bytearray(parts[place] or b"")
            if data:
                at = drawn.randrange(len(data))
                data = drawn.choice(
                    (
                        data[:at],
                        data + b"\1\2",
                        data[:at] + bytes((drawn.randrange(256),)) + data[at + 1 :],
                        bytes((data[0] ^ 1 << drawn.randrange(8),)) + data[1:],
                    )
                )
                parts[place] = bytes(data)
            batches.append(build_batch([(1_700_000_000_000, *parts)], base_offset=len(batches)))
    target.mkdir(parents=True)
    log = target / f"{0:020d}.log"
    log.write_bytes(b"".join(batches))
    return log


def compare_internal(release: str, path: Path, decoder: str) -> int:
    """Return the number of equal lines."""
    if version_of(release) < version_of(SINCE.get(decoder, "2.4.0")):
        return 0
    expected = theirs(release, [path], (f"--{decoder}-decoder",))
    options = LogOptions(deep=True, print_data=True, internal=parser_of(decoder, release))
    # Kafka ends a line that it cannot finish where it is.
    lines, complaints, broke = ours(release, [path], Options(log=options))
    assert (lines, complaints, broke) == expected, f"{release} {path.parent.name}/{path.name}"
    return len(lines)


@pytest.mark.thorough
@pytest.mark.parametrize("release", thorough_except(("2.8.2", "3.9.2", "4.3.1"), RELEASES))
def test_internal_topics_of_a_broker_are_shown_as_by_kafka(release):
    """Groups, transactions, the cluster's metadata and tiered metadata: of three releases, by each release's tool."""
    files = [*sorted(INTERNAL.rglob("0*")), *sorted(TIERS.rglob("__remote_log_metadata-0/*.log"))]
    compared = sum(compare_internal(release, path, DECODER[path.parent.name]) for path in files)
    assert compared > 100


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1", thorough_param("4.4.0")])
def test_damaged_records_of_a_broker_are_named_as_by_kafka(release, tmp_path):
    for number, path in enumerate(sorted(INTERNAL.rglob("0*.log"))):
        if path.parent.parent.name != "made" or "remote" in path.parent.name:
            log = damaged(path, tmp_path / str(number) / path.parent.name)
            compare_internal(release, log, DECODER[path.parent.name])


@pytest.mark.parametrize("release", thorough_except(("3.9.2",), ("2.8.2", "3.9.2", "4.3.1", "4.4.0")))
def test_the_definitions_equal_those_of_the_jars(release):
    """``python -m conformance.kafka.messages kidx/messages/messages.json`` writes them."""
    for home, messages in messages_of(release).items():
        assert definitions(home, release) == messages or not messages, home
