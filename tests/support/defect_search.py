"""Search for a planted defect by a machine whose examples ``conformance run`` does not draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.lockstep import DivergenceError
from conformance.runs.chunks import CHUNK, run_chunk
from conformance.runs.profiles import Profile
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence


def search_defect(
    machine: type[Any], implementation: Any, *, steps: int, chunks: int, first_seed: int
) -> Divergence | None:
    """Return the first divergence of an implementation, or None if no chunk of examples has one."""
    with scratch_directory() as scratch:
        lockstep = machine.lockstep_type([implementation], scratch, attribute=False)
        settings = Profile("defects", CHUNK, steps, 1).settings(CHUNK)
        for number in range(chunks):
            try:
                run_chunk(machine.bind(lockstep), settings, first_seed * 1000 + number, CHUNK)
            except DivergenceError as error:
                return error.divergence
    return None
