"""What offset and time index share beyond :mod:`conformance.machines.index`: slots, sizes, and a zero tail."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from conformance.machines.index import IndexMachine
from conformance.operations import Operation
from conformance.strategies import index as strategies
from conformance.strategies.index import Start
from conformance.strategies.index_probe import Aim
from kidx.java_numbers import LONG_MAX

_HOUSEKEEPING = ("sanity_check", "flush", "trim", "truncate", "reset", "reset")
"""A reset twice: it is three clauses, and the only operation that looks at the maximum size again (AI-15, AI-44)."""


class MappedIndexMachine(IndexMachine):
    """Rules and invariants of the mapped files."""

    @rule(aim=strategies.targets())
    def lookup(self, aim: Aim) -> None:
        """Looks up a key."""
        self.do("lookup", self.probe.column(aim, 0))

    @rule(aim=strategies.slots())
    def entry(self, aim: Aim) -> None:
        """Reads a slot by number."""
        self.do("entry", self.probe.count(aim))

    @rule(aims=st.lists(strategies.sizes(), min_size=1, max_size=2))
    def resize(self, aims: list[Aim]) -> None:
        """Changes the file's length, once or twice: what a failed resize leaves shows in the next one (AI-40)."""
        for aim in aims:
            size = self.probe.size(aim)
            self.do("resize", size if self.lockstep.accepts(Operation("resize", (size,))) else 0)

    @rule(name=st.sampled_from(_HOUSEKEEPING))
    def housekeep(self, name: str) -> None:
        """The operations without arguments."""
        self.do(name)

    @rule(anchor=st.sampled_from(("warm", "last", "first", "middle")))
    def look_around(self, anchor: str) -> None:
        """Looks up a key of the index, its neighbours and what lies between, where a search takes its turns.

        A large index is rare and soon cut, so an example that begins with one looks around the warm edge at once.
        """
        for delta in strategies.NEAR if self.probe.entries else (0,):
            self.do("lookup", self.probe.column(Aim(anchor, delta), 0))

    def fill(self, operation: str, *arguments: int) -> None:
        """Appends the entries that an example begins with."""
        self.do(operation, *arguments)
        if self.probe.entries > self.probe.warm_entries:
            self.look_around("warm")

    def open_again(self, how: str, limit: int | None, then: str) -> None:
        """Opens the file again, with the maximum size it was created with or another one, and perhaps does one thing.

        Any later, and what a damage did may have been cut off or appended to: a broker that loads its segments checks
        them at once, a clean shutdown right after the start trims what the last one left.
        """
        if limit is None or not self.has("odd_arguments"):
            limit = self.created_size
        self.probe.max_index_size = limit
        self.open(how)
        if then:
            self.do(then)

    def fits(self, start: Start) -> bool:
        """Whether the offsets of a start can be appended at all, so close to the end of the longs."""
        return start.prefill > 0 and self.probe.base_offset + start.prefill * start.step <= LONG_MAX

    @invariant()
    def full_means_that_no_slot_is_left(self) -> None:
        """A time index keeps one slot for the entry that a roll appends (AI-6)."""
        state = self.state
        if state is not None and state.max_entries is not None:
            left = state.max_entries - state.entries - (self.kind == "time")
            self.lockstep.check_invariant(state.full == (left <= 0), "full means that no slot is left", state)

    @invariant()
    def the_file_is_as_long_as_the_index_says(self) -> None:
        """``length`` is the file's length; not so once a failed rename has changed the name alone (AI-21)."""
        state = self.state
        if state is None or state.length is None:
            return
        file = self.lockstep.primary.files
        if file is not None and not self.misnamed:
            same = state.length == len(file)
            self.lockstep.check_invariant(same, "the file is as long as the index says", state)
