"""Rust tests of the findings in krabka-log and Tansu fail on the locked version, each with its message.

With the proposed fixes, the tests of krabka-log pass, apart from ``NOT_FIXED``.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.resources import as_file
from pathlib import Path

import pytest
from foreign_findings import FOREIGN, assert_each_fails
from rust_builds import COMPILED, use_fixed_crate

from conformance.implementations.subject.build import command_of
from conformance.subjects import load_subject

pytestmark = [
    pytest.mark.cargo,
    pytest.mark.thorough,  # compiling the crates takes two minutes of a processor
    pytest.mark.in_turn(5, of="foreign implementations", build="krabka-log"),
    pytest.mark.timeout(900),
]
KRABKA = load_subject("krabka-log")
NOT_FIXED = {"a_batch_larger_than_segment_bytes_is_rejected"}
"""Tests that fail with the proposed fixes, too."""
FOLDED = re.MULTILINE | re.DOTALL

ENTRY = (
    "AbortedTxn { start_offset: Offset(%d), last_offset: Offset(%d), producer_id: ProducerId(%d), "
    "last_stable_offset: Offset(%d) }"
)
KRABKA_LOG = {
    "a_sealed_segment_without_its_time_index_keeps_its_largest_timestamp": (
        "[Some((0, 80)), Some((2, 70)), None] == [Some((0, 80)), Some((0, 80)), Some((0, 80))]"
    ),
    "a_log_that_ends_before_its_start_is_opened_at_its_start": "[0, 0] == [2, 2]",
    "truncation_to_a_log_start_offset_inside_a_batch_keeps_the_log_start_offset": "[0, 0] == [2, 2]",
    "truncation_to_before_the_log_start_offset_succeeds": (
        'Err("corrupt log: invalid producer snapshot replay frontier") == Ok(())'
    ),
    "truncation_removes_an_open_transaction": (
        'Err("corrupt log: pending transaction starts beyond log end 1") == Ok((Offset(0), None))'
    ),
    "a_log_opens_after_a_sealed_segment_has_lost_its_records": 'recovery made no progress at offset 0") == Ok([0, 1])',
    "the_last_stable_offset_is_not_before_the_log_start_offset": "Offset(0) == Offset(1)",
    "entries_of_aborted_transactions_are_lost_with_their_records": f"[{ENTRY % (0, 1, 1, 2)}] == []",
    "a_lost_offset_index_of_a_sealed_segment_is_rebuilt": "0 == 8",
    "closing_writes_the_last_time_index_entry": "0 == 12",
    "the_entry_of_an_aborted_transaction_ignores_decided_transactions": (
        f"[{ENTRY % (1, 3, 2, 0)}] == [{ENTRY % (1, 3, 2, 4)}]"
    ),
    "a_batch_larger_than_segment_bytes_is_rejected": "Ok((Offset(0), None))",
}
TANSU = {
    "a_batch_with_a_wrong_checksum_is_rejected": "0 == 2",
    "a_lookup_by_time_uses_the_timestamps_of_the_records": "[0, 0] == [1, -1]",
    "the_latest_offset_is_after_a_compressed_batch": "1 == 3",
    "a_target_without_a_meaning_gets_an_error_code": "Err(UnexpectedEof) == Ok([(35, -1, -1)])",
    "delete_records_gets_a_response": "Err(UnexpectedEof) == Ok(1)",
    "invalid_requests_get_error_codes": "[0, 0, 0, 0] == [42, 3, 3, 76]",
    "list_offsets_version_0_has_an_array_of_offsets": "21 == 33",
    "a_topic_with_log_append_time_has_the_time_of_the_append": "0 == 8",
    "a_batch_that_the_broker_compresses_has_the_leader_epoch": "-1 == 0",
    "a_fetch_without_waiting_returns_records": "0 == 1",
}
"""End of the message of each test on the locked version: the actual result, and the expected one."""


def cargo(work, *words):
    """Run cargo without a terminal, in which assertions are longer than a line."""
    environment = {
        **os.environ,
        "ASSERT2": "compact,no-color",
        "CARGO_TARGET_DIR": str(COMPILED),
        "CARGO_TERM_COLOR": "never",
        "RUST_BACKTRACE": "0",
    }
    return subprocess.run(["cargo", *words], cwd=work, env=environment, capture_output=True, text=True, check=False)


def locked(package):
    """Return the locked packages of a Cargo.lock that come from a registry, and the names of the registries."""
    packages = [
        each for each in tomllib.loads((package / "Cargo.lock").read_text("utf-8"))["package"] if "source" in each
    ]
    return {(each["name"], each["version"]) for each in packages}, {each["source"] for each in packages}


@pytest.fixture
def package(tmp_path):
    """Copy the package, with the locked versions of the subject."""
    package = Path(
        shutil.copytree(
            FOREIGN / "rust" / "krabka", tmp_path / "rust", ignore=shutil.ignore_patterns("target", "*.lock")
        )
    )
    # An earlier build has fetched the crates.
    words = ("generate-lockfile", "--ignore-rust-version")
    done = cargo(package, *words, "--offline")
    if done.returncode:
        done = cargo(package, *words)
    assert done.returncode == 0, done.stderr
    _, (registry,) = locked(package)
    with as_file(KRABKA.folder / "locked.toml") as path:
        text = path.read_text("utf-8")
    (package / "Cargo.lock").write_text(text.replace('source = "registry"', f'source = "{registry}"'), "utf-8")
    return package


def failures(package, target):
    """Run the tests of a file with the locked crates. Return the failed assertions of each; empty if it passed."""
    before, _ = locked(package)
    done = cargo(package, "test", "--ignore-rust-version", "--no-fail-fast", "--test", target)
    results = dict(re.findall(r"^test (\w+) \.\.\. (ok|FAILED)$", done.stdout, re.MULTILINE))
    assert results, f"no test ran: {done.stdout}{done.stderr}"
    assert locked(package)[0] <= before
    found = {name: [] for name in results}
    # Lines are folded, also within words.
    for name, output in re.findall(r"^---- (\w+) stdout ----\n(.*?)(?=^---- |^failures:)", done.stdout, FOLDED):
        expanded = re.findall(r"^with expansion:\n(.+?)\n(?:with message:|\n)", output, FOLDED)
        found[name] = [each.replace("\n", "").strip() for each in expanded]
    for name, result in results.items():
        assert (result == "FAILED") == bool(found[name]), done.stdout
    return found


def patterns(messages):
    return {name: [f"{re.escape(message)}$"] for name, message in messages.items()}


def test_each_fails_on_the_locked_krabka_log(package):
    assert_each_fails(failures(package, "krabka_log"), patterns(KRABKA_LOG), f"krabka-log {KRABKA.version}")


@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="its program is for Linux")
def test_each_fails_on_the_locked_tansu(package, monkeypatch):
    tansu = load_subject("tansu")
    monkeypatch.setenv("TANSU", command_of(tansu)[-1])
    assert_each_fails(failures(package, "tansu"), patterns(TANSU), f"Tansu {tansu.version}")


def test_each_passes_on_krabka_log_with_the_proposed_fixes(package):
    """The tests can pass: what they expect needs no other change of krabka-log."""
    use_fixed_crate(cargo, package, "krabka-log", KRABKA.version)
    assert {name for name, messages in failures(package, "krabka_log").items() if messages} == NOT_FIXED
