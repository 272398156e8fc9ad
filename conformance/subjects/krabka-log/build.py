# ruff: noqa: INP001 -- a program of a subject, and no part of the package
"""Build of krabka-log's program: ``build.py DIRECTORY`` writes it there.

``locked.toml`` is a Cargo.lock with the word ``registry`` for the source of each package. The real name of the source
is read from a Cargo.lock that cargo generates. With ``CARGO_TARGET_DIR``, that directory keeps the compiled crates.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

LOCK, PROGRAM, FLAGS = pathlib.Path("Cargo.lock"), "krabka-subject", ("--quiet", "--ignore-rust-version")

subprocess.run(["cargo", "generate-lockfile", *FLAGS], check=True)  # noqa: S603, S607
(registry,) = {package["source"] for package in tomllib.loads(LOCK.read_text())["package"] if "source" in package}
LOCK.write_text(pathlib.Path("locked.toml").read_text().replace('source = "registry"', f'source = "{registry}"'))
target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or pathlib.Path(sys.argv[1], "target"))
subprocess.run(["cargo", "build", *FLAGS, "--locked", "--target-dir", target], check=True)  # noqa: S603, S607
shutil.move(target / "debug" / PROGRAM, sys.argv[1])
if "CARGO_TARGET_DIR" not in os.environ:
    shutil.rmtree(target)
