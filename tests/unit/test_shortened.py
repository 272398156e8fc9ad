"""Operations as text: whole batches are described, and other long arguments are cut."""

from __future__ import annotations

from conformance.operations import Operation
from conformance.operations.shortened import shortened
from kidx.records import build_batch


def test_batches_are_described_by_their_offsets():
    data = build_batch([(500, b"key", b"value"), (700, b"key", b"value")], base_offset=1000)
    step = Operation("append_records", (data.hex(), 1001, 700, 1000))
    assert shortened(step).startswith(f"append_records(records=<{len(data)} bytes: 1000–1001 at 700>, ")
    assert "<3 bytes: no whole batch>" in shortened(step._replace(args=("000102", *step.args[1:])))


def test_only_a_long_argument_is_cut():
    step = Operation("damage_log_file", ("0.index", "write_file", ["00" * 200]))
    assert shortened(step).endswith("… (404 characters))")
    assert shortened(Operation("lookup", (7,))) == str(Operation("lookup", (7,)))
