"""Old names of the commands and options of ``conformance``, each with its new name."""

from __future__ import annotations

from typing import Final

from kidx.commands.aliases import ARGUMENT, Aliases

_UNTIL: Final = "0.3"
"""Version that removes the old names."""
_WITHOUT: Final = {"--without": "--skip-feature"}

COMMANDS: Final = Aliases(
    _UNTIL,
    commands={
        "file-damage": "corrupt",
        "hands": "corrupt",
        "historical": "known-bugs",
        "list": "clauses",
        "power": "mutate",
        "record": "record-golden",
        "small-world": "exhaustive",
        "subjects": "implementations",
    },
    options={
        "clauses": {"--clause": ARGUMENT},
        "cluster": {"--both": "--all-modes"},
        "diff": {"--expect": "--expectations"},
        "fuzz": {"--guided": "--coverage-guided"},
        "replay": {**_WITHOUT, "--script": "--export"},
        "run": {
            **_WITHOUT,
            "--bootstrap": "--bootstrap-server",
            "--stop-at-first": "--fail-fast",
            "--update-expectations": "--suggest-expectations",
        },
        "scoreboard": _WITHOUT,
    },
    shared={"--shrink-time": "--max-shrink-time"},
)
KAFKA: Final = Aliases(
    _UNTIL,
    commands={"propose": "infer-dialect"},
    options={
        "infer-dialect": {"--against": "--baseline"},
        "lock": {"--repository": "--in-package", "--work": "--download-dir"},
    },
)
