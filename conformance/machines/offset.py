"""The life of a ``.index`` file (KAFKA_BEHAVIOUR.md sections 1 and 2)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from conformance import strategies
from conformance.machines.index import calls_on_closed, closings, damages_of, openings
from conformance.machines.mapped import MappedIndexMachine
from conformance.operations import Operation
from conformance.strategies import Start
from conformance.view import Aim
from kidx.java_numbers import INT_MAX, INT_MIN, LONG_MAX, to_int, to_long
from kidx.layout import OFFSET_INDEX

_LAST = Aim("last", 0)


class OffsetMachine(MappedIndexMachine):
    """Appends, looks up, cuts and damages an offset index."""

    kind = "offset"
    suffix = ".index"

    @initialize(base_offset=strategies.base_offsets(), start=strategies.starts(OFFSET_INDEX.size))
    def begin(self, base_offset: int, start: Start) -> None:
        """Creates the file, mostly with entries in it; one in six past the warm section."""
        self.create(base_offset, start.max_index_size)
        if self.fits(start):
            self.do("bulk_append", base_offset, 0, start.step, 100, start.prefill)

    @rule(gap=strategies.gaps(), step=strategies.positions())
    def append_next(self, gap: int, step: int) -> None:
        """Appends behind the last entry, as a segment does."""
        offset, position = self.view.column(_LAST, 0), self.view.column(_LAST, 1)
        self.do("append", to_long(offset + gap), to_int(position + step))

    @rule(aim=strategies.aimed_offsets(), position=st.sampled_from((0, 7, -1, INT_MAX, INT_MIN)))
    def append_anywhere(self, aim: Aim, position: int) -> None:
        """Appends where it is likely to be refused."""
        self.do("append", self.view.column(aim, 0), position)

    @rule(count=strategies.bulk_counts(), gap=strategies.gaps(), step=strategies.positions())
    def bulk_append(self, count: int, gap: int, step: int) -> None:
        """Appends several entries in one step."""
        offset = self.view.column(_LAST, 0)
        if offset + (count + 1) * gap > LONG_MAX or count * abs(step) > INT_MAX:
            gap = step = 0
        self.do("bulk_append", offset + gap, 0, gap, step, count)

    @rule(aim=strategies.targets(), size=strategies.fetch_sizes())
    def fetch_upper_bound(self, aim: Aim, size: int) -> None:
        """Asks how far a fetch of some size may reach."""
        self.do("fetch_upper_bound", self.view.column(aim, 0), to_int(self.view.column(aim, 1)), size)

    @rule(count=st.sampled_from((2, 3, 5)), size=st.sampled_from((0, 100, -1)))
    def fetch_up_to_equal_positions(self, count: int, size: int) -> None:
        """Appends entries of one position and asks for a fetch that ends there: which one answers (AI-36)?

        By chance positions are equal often enough, and fetches end at one often enough, but hardly ever the same one.
        """
        offset, position = self.view.column(_LAST, 0), to_int(self.view.column(_LAST, 1) + 1)
        if offset + count > LONG_MAX:
            return
        self.do("bulk_append", offset + 1, position, 1, 0, count)
        self.do("fetch_upper_bound", offset, to_int(position - size), size)

    @rule(
        how=closings(),
        calls=calls_on_closed("offset", ".index"),
        damages=damages_of("offset"),
        opening=openings(),
        limit=strategies.limits(OFFSET_INDEX.size),
        check=st.booleans(),
    )
    def reopen(
        self, how: str, calls: list[Operation], damages: list[Operation], opening: str, limit: int | None, check: bool
    ) -> None:
        """Closes or crashes, damages the file, and opens it again, read-write or read-only.

        Every other time it is checked at once, as a broker that loads its segments does: any later, and what the
        damage did may have been cut off or appended to.
        """
        self.close_and_damage(how, calls, damages)
        self.open_again(opening, limit, check)
