"""Machines, and what each is used for; :mod:`conformance.machines` has the class of each."""

from __future__ import annotations

from typing import Final, NamedTuple


class MachineUse(NamedTuple):
    """Use of one machine.

    Attributes:
        drawn: True if ``conformance run`` draws examples; the traces of every machine are replayed.
        server: True if it drives a server that is running, on a topic, and not files that the harness opens.
        share: The factor for a profile's examples if a step takes longer than a step of an index: more files are
            compared.
    """

    drawn: bool = True
    server: bool = False
    share: float = 1.0


MACHINES: Final = {
    "offset": MachineUse(),
    "time": MachineUse(),
    "transaction": MachineUse(),
    "segment": MachineUse(share=0.3),
    "log": MachineUse(share=0.15),
    "cleaned": MachineUse(share=0.1),
    "cache": MachineUse(drawn=False),
    "tiered": MachineUse(drawn=False),
    "broker": MachineUse(server=True),
    "wire": MachineUse(server=True),
}
"""The use of each machine, by name."""
SERVER_MACHINES: Final = tuple(name for name, use in MACHINES.items() if use.server)
FILE_MACHINES: Final = tuple(name for name, use in MACHINES.items() if use.drawn and not use.server)
"""Machines of ``conformance run`` whose implementations open files; all of them share one lockstep."""
