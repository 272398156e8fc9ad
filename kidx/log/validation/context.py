"""Context in which a leader validates batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kidx.java_numbers import LONG_MAX
from kidx.producers.truncated_records import largest_record

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.config import LogConfig
    from kidx.records import Codec


@dataclass(frozen=True, slots=True)
class ValidationContext:
    """Topic, clock, and log end of a validation.

    Attributes:
        dialect: rules of a release.
        config: settings of the topic.
        first_offset: offset of the first record.
        leader_epoch: epoch of the leader.
        now: the clock in milliseconds.
        from_client: True if a producer sent the batches, False for a transaction coordinator.
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
        if not self.config.takes_any_timestamp:  # otherwise the dialect does not matter
            object.__setattr__(self, "limits", self.config.timestamp_limits(self.dialect))

    @property
    def log_append_time(self) -> int | None:
        """Timestamp of all records if the topic uses LogAppendTime, otherwise None."""
        return self.now if self.config.log_append_time else None

    @property
    def max_record_body_size(self) -> int:
        """Maximum size in bytes of a compressed record."""
        return largest_record(self.config.max_record_body_size, self.dialect)

    def target_of(self, source: Codec) -> Codec:
        """Return the codec to which batches with a codec are to be compressed."""
        return source if self.config.compression is None else self.config.compression
