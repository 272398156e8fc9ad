"""What differs in what releases know of producers; asked for by :mod:`kidx.producers` and by a log that keeps them."""

from __future__ import annotations

from functools import cached_property

from kidx.dialect.log import LogBehaviours


class ProducerBehaviours(LogBehaviours):
    """One observable behaviour a property."""

    @cached_property
    def markers_have_timestamps(self) -> bool:
        """A producer was last heard of when its marker was written; before, only batches counted (from 2.4.1)."""
        return self.version >= (2, 4, 1)

    @cached_property
    def unknown_sequences_are_refused(self) -> bool:
        """A producer that nothing is known of has to begin with sequence number 0 (KAFKA-8710; 2.4)."""
        return self.version < (2, 5)

    @cached_property
    def snapshots_always_have_a_batch(self) -> bool:
        """A producer read from a snapshot has a last batch, if only that of offset -1 (2.4.0)."""
        return self.version < (2, 4, 1)

    @cached_property
    def snapshots_are_remembered(self) -> bool:
        """Which snapshots there are is known from opening, and they go with their segments (KAFKA-9393; from 2.8)."""
        return self.version >= (2, 8)

    @cached_property
    def snapshots_go_at_once(self) -> bool:
        """A segment's snapshot is renamed with it; before, it went when the files were deleted (from 3.0)."""
        return self.version >= (3, 0)

    @cached_property
    def rolling_keeps_snapshot(self) -> bool:
        """Rolling an empty segment anew leaves its snapshot alone (from 3.1)."""
        return self.version >= (3, 1)

    @cached_property
    def truncation_keeps_snapshots_first(self) -> bool:
        """The snapshots of truncated segments go when the last one left has been cut (LG-77; from 3.1)."""
        return self.version >= (3, 1)

    @cached_property
    def producers_are_in_scala(self) -> bool:
        """Producers are in a hash table of Scala's, which shows in the order of a snapshot (up to 3.4)."""
        return self.version < (3, 5)

    @cached_property
    def appends_are_in_scala(self) -> bool:
        """The producers of one append are in such a table until it is done (up to 3.9)."""
        return self.version < (4, 0)

    @cached_property
    def recovery_knows_its_producers(self) -> bool:
        """Reading producers for a recovery goes on from one segment to the next; before, each began anew (from 2.8)."""
        return self.version >= (2, 8)

    @cached_property
    def transactions_are_verified(self) -> bool:
        """A leader can be asked to begin the verification of a transaction (KIP-890; LG-45; from 3.6)."""
        return self.version >= (3, 6)

    @cached_property
    def coordinators_are_verified(self) -> bool:
        """Batches of a coordinator need a guard as well, but for markers (LG-45; from 3.7)."""
        return self.version >= (3, 7)

    @cached_property
    def verification_knows_epochs(self) -> bool:
        """Only a transaction of the same epoch goes on without a guard (LG-45; from 4.0)."""
        return self.version >= (4, 0)

    @cached_property
    def verification_fences(self) -> bool:
        """No verification begins in an old epoch, and a raised one begins with sequence number 0 (LG-45; from 4.1)."""
        return self.version >= (4, 1)

    @cached_property
    def markers_end_epochs(self) -> bool:
        """A marker of the second version has a newer epoch than the transaction that it ends (LG-45; from 4.2)."""
        return self.version >= (4, 2)

    @cached_property
    def last_epoch_ends(self) -> bool:
        """In the largest epoch such a marker has the same one (LG-45; from 4.3)."""
        return self.version >= (4, 3)

    @cached_property
    def start_moves_before_deletion(self) -> bool:
        """Retention moves the log start before it removes segments; before, afterwards (KAFKA-16890; from 3.8)."""
        return self.version >= (3, 8)
