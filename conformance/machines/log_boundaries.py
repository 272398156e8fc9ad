"""Rules of the log machine that reach a limit exactly, where two comparisons differ."""

from __future__ import annotations

from conformance.machines.log_base import LogBase
from conformance.machines.seeded_rules import rule
from conformance.operations.log import EXPIRATION
from conformance.strategies import draws as st
from conformance.strategies.log import near


class BoundaryRules(LogBase):
    """Waits and sizes that are equal to a setting, or differ from it by one."""

    @rule(back=st.integers(0, 5), delta=near())
    def reach_the_retention_time(self, back: int, delta: int) -> None:
        """Let records become exactly as old as retention allows, all of them replicated, and run retention."""
        if self.settings["retention.ms"] >= 0 and self.timestamps:
            timestamp = sorted(self.timestamps)[-1 - back % len(self.timestamps)]
            self.wait_until(timestamp + self.settings["retention.ms"] + delta)
            self.do("update_high_watermark", self.offset("end"))
            self.do("apply_retention")

    @rule(delta=near())
    def reach_the_retention_size(self, delta: int) -> None:
        """Reopen the log with a size limit of exactly the bytes after its first segment, and run retention."""
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
        """Let a producer be idle for exactly the expiration time."""
        if heard := [producer[3] for producer in self.state.producers]:
            self.wait_until(heard[which % len(heard)] + self.settings[EXPIRATION] + delta)
            self.do("expire_producers")

    def wait_until(self, now: int) -> None:
        """Move the clock to a time."""
        self.now = max(0, now)
        self.do("set_clock", self.now)
