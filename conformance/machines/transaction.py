"""Transaction index machine: a ``.txnindex`` file (clauses TX)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from conformance.machines.index import IndexMachine, calls_on_closed, closings, damages_of
from conformance.operations import Operation
from conformance.strategies import index as strategies
from conformance.strategies.index_probe import AnchoredNumber
from kidx.java_values import LONG_MAX

_LAST = AnchoredNumber("last", 0)  # the last record, by its last offset
_DISTANCES = st.sampled_from((1, 1, 2, 5, 0, 100, LONG_MAX // 2))


class TransactionMachine(IndexMachine):
    """Machine that appends to, collects from, truncates and corrupts a transaction index."""

    kind = "transaction"
    suffix = ".txnindex"

    @initialize(base_offset=st.sampled_from((0, 0, 10, 5_000_000_000)), prefill=st.sampled_from((0, 0, 1, 3)))
    def begin(self, base_offset: int, prefill: int) -> None:
        """Open the index, in half of all examples with entries; no file exists before the first append (TX-2)."""
        self.create(base_offset, 0)
        for producer_id in range(prefill):
            first = base_offset + 10 * producer_id
            self.do("append_aborted", producer_id, first, first + 9, first + 10)

    @rule(
        producer_id=strategies.producers(), gap=_DISTANCES, span=_DISTANCES, stable=st.sampled_from((1, 0, -1, -5, 9))
    )
    def append_next(self, producer_id: int, gap: int, span: int, stable: int) -> None:
        """Append a transaction that ends after the last one; the two may overlap."""
        last = _offset(self.probe.offset(_LAST) + gap)
        self.do("append_aborted", producer_id, _offset(last - span), last, _offset(last + stable))

    @rule(
        producer_id=strategies.producers(),
        first=strategies.targets(),
        last=strategies.targets(),
        stable=strategies.targets(),
    )
    def append_anywhere(
        self, producer_id: int, first: AnchoredNumber, last: AnchoredNumber, stable: AnchoredNumber
    ) -> None:
        """Append a transaction with arbitrary offsets, which is likely to be rejected."""
        offsets = (_offset(self.probe.column(number, 0)) for number in (first, last, stable))
        self.do("append_aborted", producer_id, *offsets)

    @rule(fetch=strategies.targets(), upper=strategies.targets())
    def collect_aborted(self, fetch: AnchoredNumber, upper: AnchoredNumber) -> None:
        """Collect the aborted transactions in a range that begins and ends at, or near, offsets of transactions."""
        self.do("collect_aborted", _offset(self.probe.column(fetch, 0)), _offset(self.probe.column(upper, 1)))

    @rule(name=st.sampled_from(("all_aborted", "sanity_check", "flush", "reset")))
    def housekeep(self, name: str) -> None:
        """Execute an operation without arguments."""
        self.do(name)

    @rule(
        how=closings(),
        calls=calls_on_closed("transaction", ".txnindex"),
        damages=damages_of("transaction"),
        check=st.booleans(),
    )
    def reopen(self, how: str, calls: list[Operation], damages: list[Operation], check: bool) -> None:
        """Close or crash the index, call it, corrupt the file, reopen it, and perhaps run the sanity check."""
        self.close_and_damage(how, calls, damages)
        self.open("read-write")
        if check:
            self.do("sanity_check")


def _offset(value: int) -> int:
    """Return the nearest offset that a transaction can have: 0 … 2**63 - 1."""
    return min(max(value, 0), LONG_MAX)
