"""Machines, and what each is used for; :mod:`conformance.machines` has the class of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kidx.dialect import version_of


class MachineUse(NamedTuple):
    """Use of one machine.

    Attributes:
        by_default: True if ``conformance run`` selects it if it names no machine.
        server: True if it drives a server that is running, on a topic, and not files that the harness opens.
        share: The factor for a profile's examples if a step takes longer than a step of an index: more files are
            compared.
        builds: True if it drives builds (``jvm:DIR``).
        since: The first release that has what it drives; empty for all releases.
    """

    by_default: bool = True
    server: bool = False
    share: float = 1.0
    builds: bool = True
    since: str = ""


MACHINES: Final = {
    "offset": MachineUse(),
    "time": MachineUse(),
    "transaction": MachineUse(),
    "segment": MachineUse(share=0.3),
    "log": MachineUse(share=0.15),
    "cleaned": MachineUse(share=0.1),
    "cache": MachineUse(by_default=False, share=0.3, since="3.6.0"),
    "tiered": MachineUse(by_default=False, share=0.1, builds=False, since="3.7.0"),
    "broker": MachineUse(server=True),
    "wire": MachineUse(server=True),
}
"""The use of each machine, by name."""
SERVER_MACHINES: Final = tuple(name for name, use in MACHINES.items() if use.server)
FILE_MACHINES: Final = tuple(name for name, use in MACHINES.items() if not use.server)
"""Machines whose implementations open files."""
DEFAULT_MACHINES: Final = tuple(name for name in FILE_MACHINES if MACHINES[name].by_default)
"""Machines for files that a run selects if it names none."""


def why_not_driven(machine: str, release: str) -> str:
    """Return why a machine cannot drive a release, in one sentence; empty if it can."""
    since = MACHINES[machine].since
    if not since or version_of(release) >= version_of(since):
        return ""
    return f"the {machine} machine drives Kafka {since} and later"


def driven_releases(machine: str, releases: Iterable[str]) -> tuple[str, ...]:
    """Return the releases that a machine can drive, in the given order."""
    return tuple(release for release in releases if not why_not_driven(machine, release))
