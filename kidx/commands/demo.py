"""``kidx demo``: a log directory with a corrupt index, and the commands that find it, explain it and repair a copy."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from kidx.commands.line import say
from kidx.errors import ToolError

RELEASE = "4.3.1"
_BEGIN_MS = 1_767_603_600_000  # 2026-01-05T09:00Z
_HOUR_MS = 3_600_000
_SEGMENTS = 3
_BATCHES = 40
_TOPIC_ID = bytes(range(16, 32))
_STEPS = (
    ("Is every index file right, and may I start the broker?", f"kidx verify data --kafka {RELEASE} --quiet"),
    (
        "What would a consumer get that asks for 10:00? A record of 11:00, though the log has one of 10:00.",
        f"kidx lookup data/orders-0 --kafka {RELEASE} --time 2026-01-05T10:00Z --explain",
    ),
    ("Work on a copy.", "cp -r data copy"),
    ("Rebuild what is broken from the log; the old file is kept.", f"kidx repair copy --kafka {RELEASE}"),
    ("Verify the copy.", f"kidx verify copy --kafka {RELEASE} --quiet"),
    ("Look up the same time again.", f"kidx lookup copy/orders-0 --kafka {RELEASE} --time 2026-01-05T10:00Z"),
)


def demo_command(
    context: typer.Context,
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="New directory of the demo; a temporary one if not given."),
    ] = None,
) -> None:
    """Show in ten seconds what kidx does, with a small log directory that it writes, with a corrupt index.

    Each step is printed with its command. The directory is kept, so that the commands can be tried again.

    Example: kidx demo
    """
    if directory is None:
        directory = Path(tempfile.mkdtemp(prefix="kidx-demo-"))
    elif directory.exists():
        raise ToolError(f"{directory} exists already; choose a new directory")
    write_demo(directory / "data")
    program: Any = context.find_root().command
    with contextlib.chdir(directory):
        say(f"$ cd {shlex.quote(str(directory))}")
        for why, command in _STEPS:
            say("", f"# {why}", f"$ {command}")
            words = shlex.split(command)
            if words[0] == "cp":
                shutil.copytree("data", "copy")
            else:
                program.main(words[1:], prog_name="kidx", standalone_mode=False)
    say("", "Your own log directory: kidx verify /var/lib/kafka/data --kafka RELEASE")


def write_demo(data: Path) -> None:
    """Write the log directory of a KRaft broker that was stopped cleanly, in which one time index is zeros.

    It is what a power failure leaves of a file whose size reached the disk before its content.
    """
    from kidx.log import LogConfig, UnifiedLog  # noqa: PLC0415 -- keeps --help quick
    from kidx.records import build_batch  # noqa: PLC0415
    from kidx.remote.entry import text_of_id  # noqa: PLC0415

    config = LogConfig(index_interval_bytes=200, segment_index_bytes=1200)
    now = _BEGIN_MS
    with UnifiedLog(data / "orders-0", config, clock=lambda: now, dialect=RELEASE) as log:
        for number in range(_SEGMENTS * _BATCHES):
            if number and number % _BATCHES == 0:
                log.roll()
            now = _BEGIN_MS + number * _HOUR_MS // _BATCHES
            log.append_as_leader(build_batch([(now, None, b"order %04d" % number * 20)]), 0)
    records = [
        b"\1\2\0\7orders" + _TOPIC_ID + b"\0",  # a TopicRecord
        b"\1\3\0\0\0\0\0" + _TOPIC_ID + b"\2\0\0\0\1\2\0\0\0\1\1\1\0\0\0\1\0\0\0\0\0\0\0\0\0",  # a PartitionRecord
    ]
    with UnifiedLog(data / "__cluster_metadata-0", clock=lambda: now, dialect=RELEASE) as log:
        log.append_as_leader(build_batch([(now, None, each) for each in records]), 0)
    end = _SEGMENTS * _BATCHES
    for name, text in {
        "meta.properties": "version=1\ncluster.id=demo\nnode.id=1\n",
        ".kafka_cleanshutdown": '{"version":0,"brokerEpoch":9}',
        "recovery-point-offset-checkpoint": f"0\n1\norders 0 {end}\n",
        "replication-offset-checkpoint": f"0\n1\norders 0 {end}\n",
        "log-start-offset-checkpoint": "0\n0\n",
        "orders-0/partition.metadata": f"version: 0\ntopic_id: {text_of_id(_TOPIC_ID)}",
    }.items():
        (data / name).write_text(text)
    damaged = data / "orders-0" / f"{_BATCHES:020}.timeindex"
    damaged.write_bytes(bytes(damaged.stat().st_size))
