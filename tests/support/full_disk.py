"""Runs of ``kidx repair`` or ``rebuild`` on a small file system, each with more free blocks, until one succeeds.

The program needs a mount namespace: ``unshare -m`` (or ``-Urm``) ``python full_disk.py KIND PLACE PARTITION``. For each
number of free blocks it prints a line of JSON: exit code, standard error, and the state of the files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SIZE = {"tmpfs": 512 << 10, "ext4": 2 << 20}
BLOCK = {"tmpfs": 4096, "ext4": 1024}
OUT = "rebuilt"


def mount(kind: str, place: Path) -> Path:
    """Mount an empty file system below a directory."""
    disk = place / "disk"
    disk.mkdir()
    if kind == "tmpfs":
        words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE[kind]}", "tmpfs", disk]
    else:
        image = place / "image"
        with image.open("wb") as file:
            file.truncate(SIZE[kind])
        make = ["mkfs.ext4", "-q", "-F", "-b", str(BLOCK[kind]), "-O", "^has_journal", "-m", "0", image]
        subprocess.run(make, check=True)
        words = ["mount", "-o", "loop", image, disk]
    subprocess.run(words, check=True)
    return disk


def content(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def is_half(path: Path) -> bool:
    """Return True if an index file was made without the other one, or a directory without a file."""
    if path.is_dir():
        return path.parts[-1] != "lost+found" and not any(path.iterdir())
    return path.suffix == ".index" and not path.with_suffix(".timeindex").exists()


def fill(disk: Path, blocks: int, size: int) -> None:
    """Fill the file system until only this number of blocks is free."""
    with (disk / "filler").open("wb", buffering=0) as file:
        free = os.statvfs(disk)
        left = free.f_bavail * free.f_frsize // size - blocks
        for _ in range(left):
            try:
                file.write(b"x" * size)
            except OSError:  # indirect blocks
                break
        os.fsync(file.fileno())


def perform(words: list[str], err: Path) -> int:
    """Run a command in its own process. Return its exit code, or minus the number of the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        descriptor = os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.argv = ["kidx", *words]
        code = 99
        try:
            from kidx.cli import main

            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(command: str, kind: str, place: Path, partition: Path) -> None:
    """Print the result for every number of free blocks."""
    from kidx.verify import verify_paths

    verify_paths([partition], processes=1)  # compiles the kernels into the cache of all later processes
    disk = mount(kind, place)
    for blocks in range(200):
        log = Path(shutil.copytree(partition, disk / "logs" / partition.name))
        before = content(disk / "logs")
        fill(disk, blocks, BLOCK[kind])
        words = ["repair", "-q", "-j", "1", log] if command == "repair" else ["rebuild", log, "-q"]
        words += ["--out", disk / OUT] if command == "out" else ["--in-place"] if command == "place" else []
        code = perform([*map(str, words), "--kafka", "4.4.0", "--index-interval-bytes", "64"], place / "err")
        after = content(disk / "logs")
        told = {
            "blocks": blocks,
            "code": code,
            "err": (place / "err").read_text(),
            "same": before == after,
            "lost": sorted(name for name, data in before.items() if data not in after.values()),
            "left": [str(path.relative_to(disk)) for path in disk.rglob("*") if ".kidx" in path.name or is_half(path)],
        }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        for path in (disk / "logs", disk / OUT):
            shutil.rmtree(path, ignore_errors=True)
        (disk / "filler").unlink()
        if code == 0:
            return
    raise SystemExit("it never had enough")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
