"""Sets up an environment of its own and runs a command in it: ``python3 bootstrap.py COMMAND [ARGUMENT ...]``.

    python3 bootstrap.py conformance run       set up, then run the harness
    python3 bootstrap.py pytest                set up, then run the tests

Needs Python 3.11 with its venv module and pip's registry; nothing else, no Java, no Docker. The environment is
``.venv`` beside this file (``KIDX_VENV`` names another place). What is installed is the wheel, not the source tree, so
what runs is what users get; it is built anew when a source file has changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = Path(os.environ.get("KIDX_VENV", ROOT / ".venv")).resolve()
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
TEST_COMMANDS = {"pytest", "ruff", "mypy", "coverage", "codespell", "python"}
EXTRAS = {"kidx": "scan"}
SOURCE = r"pyspark\b"  # published without a wheel, half a gigabyte of it: pip makes one while it installs the others


def main() -> int:
    """Set up the environment of a command and replace this process by it."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    if sys.version_info < (3, 11):  # noqa: UP036 -- this file is what an old Python runs first
        return complain(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    command, *arguments = sys.argv[1:]
    extras = "test" if command in TEST_COMMANDS else EXTRAS.get(command, "jvm,broker")
    try:
        set_up(extras)
    except (subprocess.CalledProcessError, OSError) as error:
        return complain(f"the environment {VENV} could not be set up: {error}")
    executable = BIN / command
    if not executable.exists():
        return complain(f"there is no command {command!r} in {BIN}")
    os.environ["KIDX_WHEEL"] = "1"  # tests check that they do not test the source tree
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each of a hundred processes compiles what it imports
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    os.execv(executable, [str(executable), *arguments])  # noqa: S606
    return 0  # never reached


def set_up(extras: str) -> None:
    """Create the environment, build the wheel and install it, each only if necessary."""
    if not (BIN / "python").exists():
        say(f"making {VENV}")
        venv.create(VENV, with_pip=True)
    sources = fingerprint()
    wanted = f"{sources} {extras}\n"
    mark = VENV / "kidx-installed"
    installed = mark.read_text().splitlines(keepends=True) if mark.exists() else []
    if {wanted, f"{sources} test\n"} & set(installed):  # whose extra holds all others
        return
    say(f"installing kidx[{extras}]")
    wheels = VENV / "wheels"
    for old in wheels.glob("*.whl"):
        old.unlink()
    needs = requirements(extras)
    there = any(VENV.glob("lib/python*/site-packages/pyspark"))
    unbuilt = [] if there else [need for need in needs if re.match(SOURCE, need)]
    with start_pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT), *unbuilt) as building:
        pip("install", *(need for need in needs if need not in unbuilt))  # meanwhile: a wheel is built somewhere else
    if building.returncode:
        raise subprocess.CalledProcessError(building.returncode, building.args)
    if unbuilt:
        pip("install", "--find-links", str(wheels), *unbuilt)
        for used in wheels.glob("pyspark-*.whl"):
            used.unlink()
    pip("install", "--force-reinstall", "--no-deps", str(next(wheels.glob("kidx-*.whl"))))
    same = [line for line in installed if line.startswith(sources)]
    mark.write_text("".join([*same, wanted]))


def requirements(extras: str) -> list[str]:
    """Return the requirements of the package with these extras, some of which include others."""
    import tomllib  # noqa: PLC0415 -- an old Python is told so, and does not have it

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted, seen = [*project["dependencies"], f"kidx[{extras}]"], []
    for each in wanted:  # which grows
        if own := re.fullmatch(r"kidx\[(.*)\]", each):
            wanted += [need for extra in own[1].split(",") for need in project["optional-dependencies"][extra]]
        elif each not in seen:
            seen.append(each)
    return seen


def fingerprint() -> str:
    """Return a hash of everything that goes into the wheel."""
    digest = hashlib.sha256(sys.version.encode())
    sources = [ROOT / "pyproject.toml"]
    for package in ("kidx", "conformance", "docker"):
        sources += sorted(path for path in (ROOT / package).rglob("*") if path.is_file() and path.suffix != ".pyc")
    for path in sources:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def pip(command: str, *arguments: str) -> None:
    """Run the environment's own pip, quietly."""
    with start_pip(command, *arguments) as running:
        pass
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, running.args)


def start_pip(command: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a command of pip."""
    words = [str(BIN / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", command]
    if command == "install":
        words.append("--no-compile")  # of 12,000 modules only what is imported is compiled, then
    # A wheel that pip makes, as of PySpark's 500 MB, is only made to be unpacked: compressing it takes half a minute.
    stored = VENV / "stored.cfg"
    stored.write_text("[bdist_wheel]\ncompression = stored\n")
    environment = {"DIST_EXTRA_CONFIG": str(stored)} | os.environ
    return subprocess.Popen([*words, *arguments], env=environment)  # noqa: S603


def say(text: str) -> None:
    """One line on stderr."""
    print(f"bootstrap: {text}", file=sys.stderr)  # noqa: T201


def complain(text: str) -> int:
    """One line on stderr; the exit code of "could not do the work"."""
    say(text)
    return 2


if __name__ == "__main__":
    sys.exit(main())
