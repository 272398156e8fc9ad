"""What a leader goes by when it validates batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kidx.java_numbers import LONG_MAX
from kidx.producers.cut_records import largest_record

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.config import LogConfig
    from kidx.records import Codec


@dataclass(frozen=True, slots=True)
class Terms:
    """The topic, the clock, and where the log ends.

    Attributes:
        dialect: whose rules.
        config: of the topic.
        first_offset: of the first record.
        leader_epoch: of the leader.
        now: the clock, milliseconds.
        from_client: a producer sent the batches, not a transaction coordinator.
        limits: milliseconds by which a timestamp may be older, and newer, than the clock.
    """

    dialect: Dialect
    config: LogConfig
    first_offset: int
    leader_epoch: int
    now: int
    from_client: bool = True
    limits: tuple[int, int] = field(init=False, default=(LONG_MAX, LONG_MAX))

    def __post_init__(self) -> None:
        if not self.config.takes_any_timestamp:  # else the dialect does not matter
            object.__setattr__(self, "limits", self.config.timestamp_limits(self.dialect))

    @property
    def log_append_time(self) -> int | None:
        """The timestamp of all records, where the topic wants the broker's."""
        return self.now if self.config.log_append_time else None

    @property
    def max_record_body_size(self) -> int:
        """Bytes that a compressed record may have."""
        return largest_record(self.config.max_record_body_size, self.dialect)

    def target_of(self, source: Codec) -> Codec:
        """What batches of a codec are to be compressed with."""
        return source if self.config.compression is None else self.config.compression
