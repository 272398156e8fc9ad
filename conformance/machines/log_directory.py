"""Rules of the log machine about the log's directory: its topic id, its names, its end, and a disk that fails."""

from __future__ import annotations

from typing import Final

from conformance.machines.log_base import LogBase
from conformance.machines.seeded_rules import rule
from conformance.strategies import draws as st
from conformance.strategies.log import Damage, metadata_damages

_CALLS: Final = (
    ("append_as_follower", ""),
    ("roll_log", ""),
    ("truncate_log", "half"),
    ("truncate_log", "end"),
    ("truncate_fully", "end"),
    ("delete_records", "start"),
    ("delete_records", "high_watermark"),
    ("update_high_watermark", "end"),
    ("update_high_watermark", "half"),
    ("offset_snapshot", ""),
)
"""Operations that look whether the log is usable, each with the name of an offset."""


class DirectoryRules(LogBase):
    """Operations of a broker on a whole directory, which no client requests."""

    @rule(first=st.sampled_from((1, 1, 2)), then=st.sampled_from((1, 2)), damage=metadata_damages())
    def have_a_topic_id(self, first: int, then: int, damage: Damage | None) -> None:
        """Assign a topic id, reopen the log, perhaps with a corrupt file of the id, and assign another id."""
        if not self.is_open or "assign_topic_id" in self.lockstep.lacking:
            return
        end, start = self.offset("end"), self.offset("start")
        self.do("assign_topic_id", first)
        self.do("close_log", True)
        if damage is not None:
            self.do("damage_log_file", damage.suffix, damage.how, list(damage.arguments))
        self.is_open = False
        self.open(clean=True, recovery_point=end, start=start)
        self.do("topic_id")
        self.do("assign_topic_id", then)
        self.do("topic_id")

    @rule(calls=st.lists(st.sampled_from(_CALLS), min_size=1, max_size=3))
    def move_from_another_disk(self, calls: list[tuple[str, str]]) -> None:
        """Rename the directory to the name of a copy that another disk makes, change the log, and rename it back."""
        if "rename_log" in self.lockstep.lacking:
            return
        self.do("rename_log", "future")
        self.call(calls)
        self.do("list_offsets", [-1, *sorted(self.timestamps)[-2:]])
        self.do("end_offset_for_epoch", self.epoch)
        self.do("rename_log", "topic")

    @rule(renamed=st.booleans())
    def delete_the_log(self, renamed: bool) -> None:
        """Delete the log, after its directory was perhaps renamed, and create it again."""
        if not self.is_open or "delete_log" in self.lockstep.lacking:
            return
        if renamed:
            self.do("rename_log", "deleted")
            self.do("end_offset_for_epoch", self.epoch)
            self.do("topic_id")
            self.do("read_log", self.offset("start"))
        self.do("delete_log")
        self.is_open = False
        self.open(clean=True, recovery_point=0, start=0)

    @rule(calls=st.lists(st.sampled_from(_CALLS), min_size=1, max_size=3), delete=st.booleans())
    def lose_the_disk(self, calls: list[tuple[str, str]], delete: bool) -> None:
        """Let the disk of the log fail, try to use it and perhaps to delete it, kill the process, and open it again."""
        if not self.is_open or "fail_log" in self.lockstep.lacking:
            return
        end, start = self.offset("end"), self.offset("start")
        self.do("fail_log")
        self.call(calls)
        if delete:
            self.do("delete_log")
            if all(group.observation.outcome.error is None for group in self.lockstep.groups):  # as from 4.4 (LG-97)
                self.is_open = False
                self.open(clean=True, recovery_point=0, start=0)
                return
        self.do("crash_log")
        self.is_open = False
        self.open(clean=False, recovery_point=end, start=start)

    def call(self, calls: list[tuple[str, str]]) -> None:
        """Execute operations at places of the log, each an operation and the name of an offset."""
        for name, place in calls:
            if name == "append_as_follower":
                self.append_one({})
            else:
                self.do(name, *([self.offset(place)] if place else []))
