"""Rules of the log machine that reach a limit exactly, where two comparisons part."""

from __future__ import annotations

from conformance.machines.log_base import LogBase
from conformance.machines.seeded import rule
from conformance.operations.log import EXPIRATION
from conformance.strategies import draws as st
from conformance.strategies.log import near


class LimitRules(LogBase):
    """Waits and sizes that come out at what a setting says, or one beside it."""

    @rule(back=st.integers(0, 5), delta=near())
    def reach_the_retention_time(self, back: int, delta: int) -> None:
        """Lets records become exactly as old as retention allows, all of them replicated, and runs the cleaner."""
        if self.settings["retention.ms"] >= 0 and self.timestamps:
            timestamp = sorted(self.timestamps)[-1 - back % len(self.timestamps)]
            self.wait_until(timestamp + self.settings["retention.ms"] + delta)
            self.do("update_high_watermark", self.offset("end"))
            self.do("apply_retention")

    @rule(delta=near())
    def reach_the_retention_size(self, delta: int) -> None:
        """Opens the log anew with room for exactly what is behind its first segment, and runs the cleaner."""
        sizes = [size for _, size in self.state.segments]
        if self.is_open and len(sizes) > 1 and "segments" in self.lockstep.capabilities:
            self.settings = self.settings | {"retention.bytes": max(0, sum(sizes[1:]) + delta)}
            end, start = self.offset("end"), self.offset("start")
            self.do("close_log", True)
            self.is_open = False
            self.open(clean=True, recovery_point=end, start=start)
            self.do("update_high_watermark", end)
            self.do("apply_retention")

    @rule(which=st.integers(0, 3), delta=near())
    def reach_the_expiration(self, which: int, delta: int) -> None:
        """Lets a producer be silent for exactly as long as it may."""
        if heard := [producer[3] for producer in self.state.producers]:
            self.wait_until(heard[which % len(heard)] + self.settings[EXPIRATION] + delta)
            self.do("expire_producers")

    def wait_until(self, now: int) -> None:
        """Moves the clock to a time."""
        self.now = max(0, now)
        self.do("set_clock", self.now)
