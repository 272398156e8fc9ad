"""Machine of compacted logs: the log machine's rules on records with few keys, and cleaning rounds (clauses CL)."""

from __future__ import annotations

from typing import Any, ClassVar

from conformance.machines.log import LogMachine
from conformance.machines.log_rules import in_transaction, marker
from conformance.machines.seeded_rules import initialize, rule
from conformance.strategies import cleaning
from conformance.strategies import draws as st
from conformance.strategies import log as strategies

_V2 = 2
_KEYS = (1, 2, 3, 1, 2, 1)
_VALUES = (4, 0, 12, -1, 7)
"""Value sizes in bytes of records to which keys are added; -1 is a tombstone."""
_ENDS = ("abort", "commit")


class CleanedMachine(LogMachine):
    """Machine of one compacted log.

    Every record has one of a few keys. The machine adds keys to records that rules of the log machine write without.

    Attributes:
        next_dirty: The offset at which the last cleaning round ended, or -1 before the first round.
    """

    kind: ClassVar[str] = "cleaned"
    program = None

    def __init__(self) -> None:
        super().__init__()
        self._written = 0
        self.next_dirty = -1

    @initialize(settings=strategies.settings(), cleaned=cleaning.settings(), asks=st.sampled_from((True, False)))
    def begin(self, settings: dict[str, Any], cleaned: dict[str, Any], asks: bool) -> None:
        """Create the log."""
        self.settings, self.lists_offsets = self.topic(settings | cleaned), asks
        self.open(clean=True, recovery_point=0, start=0)

    # -- writing -----------------------------------------------------------------------------------------------

    def do(self, name: str, *arguments: Any) -> None:
        """Execute an operation, with keys in all records; see the base class."""
        if name in ("append_as_leader", "append_as_follower"):
            batches, epoch = arguments
            arguments = ([self._with_keys(batch) for batch in batches], epoch)
        super().do(name, *arguments)

    def _with_keys(self, batch: dict[str, Any]) -> dict[str, Any]:
        if "marker" in batch or batch.get("empty"):
            return batch
        return batch | {"records": [self._with_key(record) for record in batch["records"]]}

    def _with_key(self, record: list[int]) -> list[int]:
        if len(record) > 2:
            return record
        self._written += 1
        return [*record, _VALUES[self._written % len(_VALUES)], _KEYS[self._written % len(_KEYS)]]

    @rule(batches=cleaning.batches(), gap=st.sampled_from((0, 0, 0, 5)), magic=st.sampled_from((2, 2, 2, 2, 1, 0)))
    def replicate_keyed(self, batches: list[cleaning.Keyed], gap: int, magic: int) -> None:
        """Append, as a follower, batches of records with drawn keys; some batches are in the old formats."""
        self._replicate(batches, gap, magic)

    def _replicate(self, batches: list[cleaning.Keyed], gap: int, magic: int) -> None:
        base, sent = self.state.end_offset + gap, []
        for keyed in batches:
            rows = [
                [number, self.timestamp(3), -1 if size is None else size, *((key,) if key else ())]
                for number, (key, size) in enumerate(keyed.records)
            ]
            batch: dict[str, Any] = {"base": base, "epoch": self.epoch, "records": rows}
            if keyed.codec != "none":
                batch["codec"] = keyed.codec if magic >= _V2 else "gzip"
            sent.append(batch if magic >= _V2 else batch | {"magic": magic})
            base += len(rows)
        self.do("append_as_follower", sent, self.epoch)

    @rule(
        rounds=st.lists(cleaning.batches(), min_size=2, max_size=4),
        drawn=cleaning.rounds(),
        ends=st.sampled_from((None, "abort", "commit", "keyless")),
    )
    def write_and_clean(self, rounds: list[list[cleaning.Keyed]], drawn: cleaning.Round, ends: str | None) -> None:
        """Fill some segments and clean them; they may contain a transaction, or a last record without a key."""
        if ends in _ENDS:
            self.append_one(in_transaction(1))
        for batches in rounds:
            self._replicate(batches, 0, _V2)
        if ends in _ENDS:
            self.append_one(marker(1, ends))
        elif ends is not None:
            self.append_one({"records": [[0, self.timestamp(1), _VALUES[0]]]})
        self._clean(drawn, rolls=True)

    # -- cleaning ----------------------------------------------------------------------------------------------

    def _arguments(self, drawn: cleaning.Round) -> tuple[int, int, int, int]:
        if drawn.replicated:
            self.do("update_high_watermark", self.offset("end"))
        places = {"last": self.next_dirty, "none": -1, "beyond": self.offset("end", 5)}
        checkpoint = places[drawn.checkpoint] if drawn.checkpoint in places else self.offset(drawn.checkpoint)
        return checkpoint, drawn.io_buffer_size, drawn.slots, drawn.age

    @rule(drawn=cleaning.rounds(), rolls=st.booleans())
    def clean(self, drawn: cleaning.Round, rolls: bool) -> None:
        """Run one cleaning round; with ``rolls``, all earlier records are in inactive segments."""
        self._clean(drawn, rolls=rolls)

    def _clean(self, drawn: cleaning.Round, *, rolls: bool) -> None:
        if rolls:
            self.do("roll_log")
        self.do("clean_log", *self._arguments(drawn))
        found = self.lockstep.primary.observation.outcome
        is_done = self.is_open and self.lockstep.supports("clean_log") and found.error is None
        if is_done and isinstance(found.value, tuple) and len(found.value) > 1:
            self.next_dirty = found.value[0]

    @rule(
        drawn=cleaning.rounds(),
        crash=cleaning.crashes(),
        renamed=st.sampled_from((0, 0, 0, 1, 2, 3)),
        opening=strategies.openings(),
    )
    def crash_while_cleaning(
        self, drawn: cleaning.Round, crash: tuple[str, int], renamed: int, opening: tuple[bool, str, str]
    ) -> None:
        """Kill the process during a cleaning round, perhaps between two renames of files, and reopen the log."""
        if not self.is_open:
            return
        arguments = self._arguments(drawn)
        _, recovery_anchor, start_anchor = opening
        recovery_point, start = self.offset(recovery_anchor), self.offset(start_anchor)
        self.do("crash_cleaning", *arguments, *crash)
        for name, target in cleaning.next_renames(self.lockstep.primary.files)[:renamed]:
            self.do("damage_log_file", target, "write_file", [self.lockstep.primary.files[name].hex()])
            self.do("damage_log_file", name, "remove_file", [])
        self.is_open = False
        self.open(clean=False, recovery_point=recovery_point, start=start)
