"""Base class of the machines of offset and time indexes, which Kafka maps into memory."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from conformance.machines.index import IndexMachine
from conformance.operations import Operation
from conformance.strategies import index as strategies
from conformance.strategies.index import Start
from conformance.strategies.index_probe import AnchoredNumber
from kidx.java_values import LONG_MAX

_HOUSEKEEPING = ("sanity_check", "flush", "trim", "truncate", "reset", "reset")
"""Operations without arguments. ``reset`` is drawn twice as often, because it covers three clauses (AI-15, AI-44)."""


class MappedIndexMachine(IndexMachine):
    """Machine of a memory-mapped index file."""

    @rule(number=strategies.targets())
    def lookup(self, number: AnchoredNumber) -> None:
        """Look up a key."""
        self.do("lookup", self.probe.column(number, 0))

    @rule(number=strategies.slots())
    def entry(self, number: AnchoredNumber) -> None:
        """Read a slot by number."""
        self.do("entry", self.probe.count(number))

    @rule(numbers=st.lists(strategies.sizes(), min_size=1, max_size=2))
    def resize(self, numbers: list[AnchoredNumber]) -> None:
        """Change the file's length once or twice: a second resize shows the effect of a failed first one (AI-40)."""
        for number in numbers:
            size = self.probe.size(number)
            self.do("resize", size if self.lockstep.accepts(Operation("resize", (size,))) else 0)

    @rule(name=st.sampled_from(_HOUSEKEEPING))
    def housekeep(self, name: str) -> None:
        """Execute an operation without arguments."""
        self.do(name)

    @rule(anchor=st.sampled_from(("warm", "last", "first", "middle")))
    def look_around(self, anchor: str) -> None:
        """Look up a key of the index and its neighbours, to find off-by-one errors.

        Large indexes are rare and soon truncated. So an example that begins with a large index does this immediately,
        at the first key of the warm section.
        """
        for delta in strategies.NEAR if self.probe.entries else (0,):
            self.do("lookup", self.probe.column(AnchoredNumber(anchor, delta), 0))

    def fill(self, operation: str, *arguments: int) -> None:
        """Append the first entries of an example."""
        self.do(operation, *arguments)
        if self.probe.entries > self.probe.warm_entries:
            self.look_around("warm")

    def open_again(self, how: str, limit: int | None, then: str) -> None:
        """Reopen the file, and execute an operation that is interesting only before any other operation.

        Brokers do the same: they check segments while they load them, and trim them in a clean shutdown.

        Args:
            how: The argument of :meth:`open`.
            limit: The maximum size, or None for the original one.
            then: The name of the operation, or empty.
        """
        if limit is None or not self.has("odd_arguments"):
            limit = self.created_size
        self.probe.max_index_size = limit
        self.open(how)
        if then:
            self.do(then)

    def fits(self, start: Start) -> bool:
        """Return True if the first entries of an example can be appended, and their offsets are valid longs."""
        return start.prefill > 0 and self.probe.base_offset + start.prefill * start.step <= LONG_MAX

    @invariant()
    def full_means_that_no_slot_is_left(self) -> None:
        """Check that ``full`` is True if no slot is left; a time index reserves one for the entry of a roll (AI-6)."""
        state = self.state
        if state is not None and state.max_entries is not None:
            left = state.max_entries - state.entries - (self.kind == "time")
            self.lockstep.check_invariant(state.full == (left <= 0), "full means that no slot is left", state)

    @invariant()
    def the_file_is_as_long_as_the_index_says(self) -> None:
        """Check that ``length`` is the file's length, unless a failed rename has left a wrong path (AI-21)."""
        state = self.state
        if state is None or state.length is None:
            return
        file = self.lockstep.primary.files
        if file is not None and not self.misnamed:
            same = state.length == len(file)
            self.lockstep.check_invariant(same, "the file is as long as the index says", state)
