"""Batches with unreadable records: every corruption is drawn, and the header does not show it."""

from __future__ import annotations

from random import Random

import pytest

from conformance.strategies.batches import BatchPlan
from conformance.strategies.damaged_records import RecordDamage, record_damages
from kidx.errors import KidxError
from kidx.records import Codec, iter_memory_batches

TWO = BatchPlan(steps=(0, 1), ages=(1, 2), leader_epoch=3)


def drawn(count=400):
    chance = Random(1)  # noqa: S311 -- nothing secret
    draw = record_damages()
    return {draw.pick(chance) for _ in range(count)}


def test_every_damage_meets_every_codec():
    found = {(damage.how, damage.codec) for damage in drawn(2000)}
    assert found == {(how, codec) for how, _ in found for codec in Codec}
    assert {how for how, _ in found} == {"claim", "endless", "flip", "cut", "stream", "count"}


def test_the_header_is_sound_and_claims_a_timestamp_beyond_all_others():
    for damage in drawn():
        (batch,) = iter_memory_batches(damage.of(TWO, 7, 1000))
        batch.ensure_valid()
        assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (7, 8, 3)
        assert batch.max_timestamp > 1002


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.label)
@pytest.mark.parametrize("how", ["claim", "endless", "cut", "stream"])
def test_the_records_cannot_be_read(how, codec):
    (batch,) = iter_memory_batches(RecordDamage(how, 0, 0x40, codec).of(TWO, 0, 1000))
    with pytest.raises((KidxError, OSError)):
        list(batch)
