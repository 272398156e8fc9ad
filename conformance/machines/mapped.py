"""Rules that offset and time indexes share beyond :mod:`conformance.machines.index`: slots, sizes, and a zero tail."""

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
"""Operations without arguments. ``reset`` is listed twice: it covers three clauses, and no other operation reads the
maximum size again (AI-15, AI-44).
"""


class MappedIndexMachine(IndexMachine):
    """Rules and invariants of the mapped files."""

    @rule(aim=strategies.targets())
    def lookup(self, aim: Aim) -> None:
        """Look up a key."""
        self.do("lookup", self.probe.column(aim, 0))

    @rule(aim=strategies.slots())
    def entry(self, aim: Aim) -> None:
        """Read a slot by number."""
        self.do("entry", self.probe.count(aim))

    @rule(aims=st.lists(strategies.sizes(), min_size=1, max_size=2))
    def resize(self, aims: list[Aim]) -> None:
        """Change the file's length, once or twice: the next resize shows what a failed one left (AI-40)."""
        for aim in aims:
            size = self.probe.size(aim)
            self.do("resize", size if self.lockstep.accepts(Operation("resize", (size,))) else 0)

    @rule(name=st.sampled_from(_HOUSEKEEPING))
    def housekeep(self, name: str) -> None:
        """Execute an operation without arguments."""
        self.do(name)

    @rule(anchor=st.sampled_from(("warm", "last", "first", "middle")))
    def look_around(self, anchor: str) -> None:
        """Look up a key of the index, its neighbours and the keys between, where the search changes direction.

        A large index is rare and soon truncated, so an example that begins with one looks around the warm edge
        immediately.
        """
        for delta in strategies.NEAR if self.probe.entries else (0,):
            self.do("lookup", self.probe.column(Aim(anchor, delta), 0))

    def fill(self, operation: str, *arguments: int) -> None:
        """Append the entries that an example begins with."""
        self.do(operation, *arguments)
        if self.probe.entries > self.probe.warm_entries:
            self.look_around("warm")

    def open_again(self, how: str, limit: int | None, then: str) -> None:
        """Reopen the file, with its original maximum size or a different one, and execute at most one operation.

        This operation has to be the next one, before a corruption is truncated or appended to: a broker checks its
        segments while it loads them, and a clean shutdown just after the start trims what the previous one left.
        """
        if limit is None or not self.has("odd_arguments"):
            limit = self.created_size
        self.probe.max_index_size = limit
        self.open(how)
        if then:
            self.do(then)

    def fits(self, start: Start) -> bool:
        """Return True if the offsets of a start can be appended, as they may be close to the largest long."""
        return start.prefill > 0 and self.probe.base_offset + start.prefill * start.step <= LONG_MAX

    @invariant()
    def full_means_that_no_slot_is_left(self) -> None:
        """Check that ``full`` is True if no slot is left; a time index keeps one for the entry of a roll (AI-6)."""
        state = self.state
        if state is not None and state.max_entries is not None:
            left = state.max_entries - state.entries - (self.kind == "time")
            self.lockstep.check_invariant(state.full == (left <= 0), "full means that no slot is left", state)

    @invariant()
    def the_file_is_as_long_as_the_index_says(self) -> None:
        """Check that ``length`` is the file's length, unless a failed rename has changed only the name (AI-21)."""
        state = self.state
        if state is None or state.length is None:
            return
        file = self.lockstep.primary.files
        if file is not None and not self.misnamed:
            same = state.length == len(file)
            self.lockstep.check_invariant(same, "the file is as long as the index says", state)
