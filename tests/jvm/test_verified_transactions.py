"""Transactions that are verified before they begin, on both sides of each change of rule (LG-45)."""

from __future__ import annotations

import pytest
from thorough_params import thorough_except

from conformance.implementations.jvm.log import JvmLog
from conformance.lockstep.scopes.log import LogLockstep
from conformance.operations import Operation
from conformance.operations.log import EXPIRATION, VERIFICATION

pytestmark = pytest.mark.jvm

SIDES = ("3.5.2", "3.6.2", "3.7.2", "3.9.2", "4.0.2", "4.1.0", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
LAST_EPOCH = (1 << 15) - 1

GUARD, NONE = True, False
FENCING = ((3, 9, 2), (4, 0, 2))
"""Patch releases with the change that came with 4.1.1 (KAFKA-19690)."""
UNVERIFIED, FENCED, SEQUENCE = "invalid_txn_state", "producer_fenced", "out_of_order_sequence"


def verify(sequence: int = 0, epoch: int = 0, *, raises: bool = False) -> Operation:
    return Operation("verify_transaction", (7, sequence, epoch, raises))


def write(sequence: int = 0, epoch: int = 0) -> Operation:
    batch = {"records": [[0, 1000]], "producer": [7, epoch, sequence], "transactional": True}
    return Operation("append_verified", ([batch], 0, 0))


def end(epoch: int = 0, version: int = 0) -> Operation:
    batch = {"records": [[0, 1000]], "producer": [7, epoch, -1], "marker": "commit"}
    return Operation("append_verified", ([batch], 0, version))


def replicate(epoch: int) -> Operation:
    batch = {"base": 0, "epoch": 0, "records": [[0, 1000]], "producer": [7, epoch, 0], "transactional": True}
    return Operation("append_as_follower", ([batch], 0))


def since(release: tuple[int, ...], before: object, after: object):
    """Return the expected result of a step by version: it changed in a release."""
    return lambda version: after if version >= release else before


STORIES = {
    "without a guard": [
        (write(), since((3, 6), None, UNVERIFIED)),
        (verify(), since((3, 6), NONE, GUARD)),
        (write(), None),
        (verify(1), NONE),  # it is open: no guard is needed
        (write(1), None),
        (end(), None),
        (write(2), since((3, 6), None, UNVERIFIED)),  # the guard was of the transaction before
    ],
    "a smaller sequence number": [
        (verify(3), since((3, 6), NONE, GUARD)),
        (verify(1), since((3, 6), NONE, GUARD)),
        (write(2), since((3, 6), None, SEQUENCE)),
        (write(1), since((3, 6), SEQUENCE, None)),
    ],
    "another sequence number of a newer epoch": [
        (verify(1), since((3, 6), NONE, GUARD)),
        (verify(5, 1), since((3, 6), NONE, GUARD)),
        (write(4, 1), None),
    ],
    "raised epochs begin with 0": [
        (verify(3, raises=True), since((3, 6), NONE, GUARD)),
        (write(3), since((4, 1), None, SEQUENCE)),
    ],
    "an old epoch": [
        (verify(0, 1), since((3, 6), NONE, GUARD)),
        (write(0, 1), None),
        (end(1), None),
        (
            verify(1, 0),
            lambda version: NONE if version < (3, 6) else FENCED if version >= (4, 1) else GUARD,
        ),
    ],
    "a batch of an old epoch": [
        (verify(0, 1), since((3, 6), NONE, GUARD)),
        (write(0, 1), None),
        (end(1), None),
        (
            write(0, 0),
            lambda version: FENCED if version < (3, 6) or version in FENCING or version >= (4, 1, 1) else UNVERIFIED,
        ),
    ],
    "the next epoch is verified before the marker comes": [
        (verify(0, 0, raises=True), since((3, 6), NONE, GUARD)),
        (write(0, 0), None),
        (verify(0, 1, raises=True), since((4, 0), NONE, GUARD)),
        (end(1, 2), None),
        (write(0, 1), lambda version: UNVERIFIED if (3, 6) <= version < (4, 0) else None),
    ],
    "a marker of the same epoch": [
        (verify(), since((3, 6), NONE, GUARD)),
        (write(), None),
        (end(0, 2), since((4, 2), None, FENCED)),
        (end(1, 2), None),
        (end(1, 2), None),  # once more
        (end(0, 2), FENCED),
        (end(1, 0), None),
    ],
    "a marker of the last epoch": [
        (replicate(LAST_EPOCH), None),
        (end(LAST_EPOCH, 2), lambda version: FENCED if (4, 2) <= version < (4, 3) else None),
    ],
    "it takes too long": [
        (verify(), since((3, 6), NONE, GUARD)),
        (Operation("set_clock", (18_999,)), None),
        (Operation("expire_producers", ()), None),
        (verify(), since((3, 6), NONE, GUARD)),
        (Operation("set_clock", (19_000,)), None),
        (Operation("expire_producers", ()), None),
        (write(), since((3, 6), None, UNVERIFIED)),
    ],
}


@pytest.mark.thorough
@pytest.mark.parametrize("release", thorough_except(["3.9.2", "4.4.0"], SIDES))
@pytest.mark.parametrize("story", STORIES)
def test_scenario_has_the_same_results_in_kafka_and_kidx(release, story, tmp_path):
    settings = {"segment.bytes": 1000, "segment.index.bytes": 120, EXPIRATION: 9000, VERIFICATION: 1}
    lockstep = LogLockstep([JvmLog(release)], tmp_path)
    version = tuple(map(int, release.split(".")))
    lockstep.begin()
    lockstep.perform(Operation("open_log", (settings, 0, 0, True, 10_000)))
    for operation, expected in STORIES[story]:
        outcome = lockstep.perform(operation).outcome
        wanted = expected(version) if callable(expected) else expected
        value = None if operation.name.startswith("append") else outcome.value
        assert (outcome.error or value) == wanted, operation
    lockstep.end()
