"""``kidx demo``: its commands, and its log directory."""

import re

from kidx.commands.demo import RELEASE, write_demo
from kidx.startup import predict
from kidx.verify import verify_paths


def test_each_step_does_what_it_says(in_process, tmp_path):
    """A time index is found broken, a lookup in it is wrong, and after a repair of a copy both are right."""
    directory = tmp_path / "new"
    done = in_process("kidx", "demo", directory, work=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    _, found, wrong, _, repaired, verified, right = done.stdout.split("\n# ")
    assert "\nBROKEN: 1 of 14 files" in found
    assert "next: kidx repair data/orders-0 --kafka" in found
    assert "answer        offset 80, timestamp 1767610800000 (2026-01-05T11:00:00Z)" in wrong
    assert "\nREPAIRED: 1 index file rebuilt and verified" in repaired
    assert "\nEXACT: 14 files" in verified
    assert "\n1767607200000: offset 40, timestamp 1767607200000" in right
    assert sorted(path.name for path in directory.iterdir()) == ["copy", "data"]
    again = in_process("kidx", "demo", directory, work=tmp_path)
    assert (again.returncode, again.stderr) == (2, f"kidx: {directory} exists already; choose a new directory\n")


def test_its_log_directory_has_one_fault_and_is_else_that_of_a_broker(tmp_path):
    write_demo(tmp_path)
    found = verify_paths([tmp_path], release=RELEASE, processes=1)
    assert [*found.faulty_paths] == [str(tmp_path / "orders-0" / f"{40:020}.timeindex")]
    start = predict([tmp_path], found, RELEASE)
    assert start.answer == "yes, but"
    assert not [line for line in start.lines() if re.search("missing|stray", line)]
