"""Machines (generators of operations): one row declares a machine; every other table is derived.

The name of a row is the name of the modules with the machine's operations (:mod:`conformance.operations`), its rows of
attribution (:mod:`conformance.attribution`), its class (:mod:`conformance.machines`), and Kafka's own classes
(``conformance.implementations.jvm``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kidx.dialect import version_of


class MachineUse(NamedTuple):
    """Use of one machine.

    Attributes:
        base: The module with its operations, if other machines have the same. It may have the name of a machine; if
            that has rows of attribution, the steps exercise their clauses as well.
        by_default: True if ``conformance run`` without a machine selects this one.
        server: True if the machine sends requests to a running server; False if it tests files in a directory.
        examples_factor: The factor for the number of a profile's examples: less than 1 if a step takes longer than a
            step on an index, because more files are compared.
        since: The first Kafka release that has what the machine tests; empty for all releases.
        needs: The operations without which a run of the machine has compared nothing worth a verdict: one that opens,
            one that writes, one that answers. Alternatives are separated by blanks.
    """

    base: str = ""
    by_default: bool = True
    server: bool = False
    examples_factor: float = 1.0
    since: str = ""
    needs: tuple[str, ...] = ()


_LOG_NEEDS: Final = ("open_log", "append_as_leader append_as_follower", "list_offsets read_log")

MACHINES: Final = {
    "offset": MachineUse("index", needs=("open", "append bulk_append", "lookup")),
    "time": MachineUse("index", needs=("open", "maybe_append bulk_maybe_append", "lookup")),
    "transaction": MachineUse("index", needs=("open", "append_aborted", "collect_aborted")),
    "segment": MachineUse(examples_factor=0.3, needs=("open_segment", "append_records", "read_segment find_offset")),
    "log": MachineUse(examples_factor=0.15, needs=_LOG_NEEDS),
    "cleaned": MachineUse("log", examples_factor=0.1, needs=(*_LOG_NEEDS, "clean_log crash_cleaning")),
    "cache": MachineUse(
        by_default=False,
        examples_factor=0.3,
        since="3.6.0",
        needs=("open_cache", "store_index", "look_up_offset look_up_timestamp"),
    ),
    "tiered": MachineUse(
        by_default=False,
        examples_factor=0.1,
        since="3.6.0",
        needs=("open_tiers", "append_as_leader append_as_follower", "list_offsets fetch_remote"),
    ),
    "broker": MachineUse(server=True, needs=("list_offsets",)),
    "wire": MachineUse("broker", server=True, needs=("list_offsets",)),
}
"""The use of each machine, by name."""
SERVER_MACHINES: Final = tuple(name for name, use in MACHINES.items() if use.server)
FILE_MACHINES: Final = tuple(name for name, use in MACHINES.items() if not use.server)
"""Machines whose implementations open files."""
DEFAULT_MACHINES: Final = tuple(name for name in FILE_MACHINES if MACHINES[name].by_default)
"""Machines that ``conformance run`` selects for an implementation that opens files, if the user names no machine."""


def why_not_driven(machine: str, release: str) -> str:
    """Return why a machine cannot test a Kafka release, in one sentence; empty if it can."""
    since = MACHINES[machine].since
    if not since or version_of(release) >= version_of(since):
        return ""
    return f"the {machine} machine drives Kafka {since} and later"


def driven_releases(machine: str, releases: Iterable[str]) -> tuple[str, ...]:
    """Return the Kafka releases that a machine can test, in the given order."""
    return tuple(release for release in releases if not why_not_driven(machine, release))
