"""Replays of the traces of server machines, by machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Observation, Operation

Tell = Callable[[int, "Operation", "Observation | None", "Divergence | None"], None]


def _replay_on_broker(
    operations: Sequence[Operation], release: str, tell: Tell, progress: Progress | None, build: Build | None
) -> tuple[Divergence | None, int]:
    from conformance.runs.broker_replay import replay_on_broker  # noqa: PLC0415 -- part of an extra

    return replay_on_broker(operations, release, tell, progress, build)


SERVER_REPLAYS: Final = {"broker": _replay_on_broker}
"""By machine: a function that executes operations, and returns the divergence and the number of steps."""
