"""What differs in what leaders take from producers; asked for by :mod:`kidx.log.validation`."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from kidx.dialect.producers import ProducerBehaviours

_NO_LIMIT: Final = (1 << 63) - 1


class LeaderBehaviours(ProducerBehaviours):
    """One observable behaviour a property."""

    @cached_property
    def followers_ask_for_sizes(self) -> bool:
        """A follower refuses what is larger than its topic allows, though its leader has it (KAFKA-9617; up to 2.5)."""
        return self.version < (2, 6)

    @cached_property
    def record_errors_are_collected(self) -> bool:
        """A leader looks at all records of a batch before it refuses it; before, the first wrong one ended it (2.5)."""
        return self.version >= (2, 5)

    @cached_property
    def wrong_inner_offsets_are_refused(self) -> bool:
        """Compressed records have to have offsets 0, 1, 2, …; from 2.5.1 they are given such (LG-55)."""
        return self.version < (2, 5, 1)

    @cached_property
    def validation_passes_over_keys(self) -> bool:
        """Of compressed records that stay as they are, a leader reads no keys and values (LG-53; from 2.6)."""
        return self.version >= (2, 6)

    @cached_property
    def validation_ignores_record_sizes(self) -> bool:
        """Where it passes over keys and values, it does not look at the size of a record (LG-54; from 3.6)."""
        return self.version >= (3, 6)

    @cached_property
    def decompressed_records_are_limited(self) -> bool:
        """A leader refuses compressed records of more than ``max.decompressed.message.bytes`` (4.4)."""
        return self.streams_timestamp_search

    @cached_property
    def timestamps_have_two_limits(self) -> bool:
        """Records may be older than the clock by one limit and newer by another (KIP-937; from 3.6)."""
        return self.version >= (3, 6)

    @cached_property
    def one_limit_stands_for_both(self) -> bool:
        """``message.timestamp.difference.max.ms`` counts where one of the two limits is not set (up to 3.9)."""
        return self.version < (4, 0)

    @cached_property
    def default_newest_timestamp(self) -> int:
        """Milliseconds by which a record may be newer than the clock by default: an hour (KIP-1030; from 4.0)."""
        return _NO_LIMIT if self.version < (4, 0) else 3_600_000

    @cached_property
    def stamped_batches_pass(self) -> bool:
        """A producer's batch may claim that a broker stamped it, if its timestamp is within the limits (LG-51)."""
        return self.version >= (3, 6)

    @cached_property
    def rewriting_keeps_delete_horizon(self) -> bool:
        """A header that gets another timestamp keeps its flag of a delete horizon (from 3.1)."""
        return self.version >= (3, 1)
