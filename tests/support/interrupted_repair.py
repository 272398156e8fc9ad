"""Kill of a repair before each writing system call, and a check of the files: ``interrupted_repair.py DIRECTORY``.

Python reports these calls to audit hooks before it makes them. Writes to open files and syncs are not reported, and are
wrapped here. Each repair runs in a forked process, which is killed as by ``kill -9``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from kidx.repair import repair_paths
from kidx.verify import verify_paths

RELEASE = "3.9.2"
EVENTS = {
    "os.link",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.chmod",
    "os.chown",
    "os.symlink",
}
WRAPPED = ("fsync", "fdatasync", "write", "pwrite", "ftruncate", "posix_fallocate")


class Watch:
    """Counter of writing calls, which kills the process before the call with a given number."""

    def __init__(self, fatal_call):
        self.fatal_call, self.calls = fatal_call, []
        sys.addaudithook(self.on_audit_event)
        for name in WRAPPED:
            setattr(os, name, self.wrapped(name, getattr(os, name)))

    def on_audit_event(self, event, arguments):
        writes = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if writes or event in EVENTS:
            self.note(event, *arguments[:2])

    def wrapped(self, name, original):
        def call(descriptor, *arguments):
            self.note(name, Path(f"/proc/self/fd/{descriptor}").readlink())
            return original(descriptor, *arguments)

        return call

    def note(self, name, *arguments):
        if len(self.calls) == self.fatal_call:
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls.append([name, *(str(argument) for argument in arguments)])


def repair(directory, fatal_call):
    """Repair in a child process; return True if it finished, and the calls that it made."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        watch = Watch(fatal_call)
        code = repair_paths([directory], release=RELEASE, processes=1).exit_code
        calls, watch.fatal_call = json.dumps(watch.calls), -1
        with os.fdopen(writer, "w") as file:
            file.write(calls)
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as file:
        calls = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    assert os.waitstatus_to_exitcode(status) == 0
    return json.loads(calls)


def content(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def main(damaged):
    before = content(damaged)
    whole = damaged.with_name("whole")
    shutil.copytree(damaged, whole)
    calls = repair(whole, None)
    repaired = content(whole)
    changed = {path for path in before.keys() | repaired.keys() if before.get(path) != repaired.get(path)}
    indexes = {path for path in changed if path.suffix.endswith("index")}
    problems = []
    for number in range(len(calls)):
        place = damaged.with_name("killed")
        shutil.copytree(damaged, place)
        ended = repair(place, number)

        def report(what, number=number):
            problems.append(f"before call {number}, {calls[number]}: {what}")

        if ended is not None:
            report("was not killed")
        after = content(place)
        for path, data in before.items():
            if path not in indexes and after.get(path) != data:
                report(f"{path} was changed")
            if path in indexes and after.get(path) not in (data, repaired.get(path)):
                report(f"{path} is neither the old file nor the new one")
            if path in indexes and data not in (after.get(path), after.get(path.with_name(f"{path.name}.old"))):
                report(f"the old {path} is lost")
        repair_paths([place], release=RELEASE, processes=1)
        if (verdict := verify_paths([place], release=RELEASE, processes=1).verdict) not in ("exact", "sound"):
            report(f"{verdict} after another repair")
        if content(place) != repaired:
            report("another repair has another result")
        shutil.rmtree(place)
    names = sorted(map(str, changed))
    print(json.dumps({"calls": calls, "problems": problems, "changed": names, "whole": str(whole)}))  # noqa: T201 -- for the test


if __name__ == "__main__":
    main(Path(sys.argv[1]))
