"""Golden files, which are stored in archives; tests read them next to the archives, as in ``tests/golden/3.9.2``."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from conformance.experiments.golden.corpus import ARCHIVE, unpack

GOLDEN = Path(__file__).parents[1] / "golden"
UNPACKED = GOLDEN / ".unpacked.json"
"""The SHA-256 of each archive that has been unpacked."""


def unpack_golden() -> None:
    """Unpack the archives that are new, or that have changed since they were last unpacked."""
    known = json.loads(UNPACKED.read_text("utf-8")) if UNPACKED.exists() else {}
    archives = {path.name.removesuffix(ARCHIVE): path for path in GOLDEN.glob(f"*{ARCHIVE}")}
    sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(archives.items())}
    for name, digest in sums.items():
        if known.get(name) != digest or not (GOLDEN / name).is_dir():
            shutil.rmtree(GOLDEN / name, ignore_errors=True)
            unpack(archives[name], GOLDEN)
    for name in known.keys() - sums.keys():
        shutil.rmtree(GOLDEN / name, ignore_errors=True)
    if known != sums:
        UNPACKED.write_text(json.dumps(sums), "utf-8")
