"""Remote storage in the layout of ``LocalTieredStorage``, made from the older segments of a local partition."""

from __future__ import annotations

import base64
import hashlib
import shutil
from itertools import pairwise
from pathlib import Path

from kidx.log.epochs import read_epochs
from kidx.producers.snapshot import encode

TOPIC_ID = "SE6ci_ZNQtWxiQUhrnEJ0g"


def id_of(name: str) -> str:
    """Return an id that is the same in every run."""
    return base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest()[:16]).decode().rstrip("=")


def bases_of(partition: Path) -> list[int]:
    """Return the base offsets of the local segments."""
    return sorted(int(path.stem) for path in partition.glob("*.log"))


def copy_segments(partition: Path, remote: Path, count: int, *, topic_id: str = TOPIC_ID) -> Path:
    """Copy the first ``count`` segments into remote storage, and return the directory of the remote partition."""
    directory = remote / "kafka-tiered-storage" / f"{partition.name}-{topic_id}"
    directory.mkdir(parents=True)
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n", "utf-8")
    bases = bases_of(partition)
    entries = read_epochs(partition / "leader-epoch-checkpoint")
    for base, behind in pairwise(bases[: count + 1]):
        name = f"{base:020d}-{id_of(f'{partition.name}-{base}')}"
        for suffix in ("log", "index", "timeindex", "txnindex"):
            if (source := partition / f"{base:020d}.{suffix}").exists():
                shutil.copyfile(source, directory / f"{name}.{suffix}")
        snapshot = partition / f"{behind:020d}.snapshot"
        data = snapshot.read_bytes() if snapshot.exists() else encode({}, {})
        (directory / f"{name}.snapshot").write_bytes(data)
        before = [entry for entry in entries if entry.start_offset <= base]
        inside = [entry for entry in entries if base < entry.start_offset < behind]
        rows = [(before[-1].epoch, base), *inside] if before else inside
        text = "".join(f"{epoch} {start}\n" for epoch, start in rows)
        (directory / f"{name}.leader_epoch_checkpoint").write_text(f"0\n{len(rows)}\n{text}", "utf-8")
    return directory


def delete_local(partition: Path, count: int) -> None:
    """Delete the first ``count`` local segments, and keep their first offset as the log start offset."""
    bases = bases_of(partition)
    for base in bases[:count]:
        for path in partition.glob(f"{base:020d}.*"):
            path.unlink()
    topic, _, number = partition.name.rpartition("-")
    text = f"0\n1\n{topic} {number} {bases[0]}\n"
    (partition.parent / "log-start-offset-checkpoint").write_text(text, "utf-8")
