"""What differs between the logs of releases (clauses LG and LO); asked for by :mod:`kidx.log`."""

from __future__ import annotations

from functools import cached_property

from kidx.dialect.segment import SegmentBehaviours


class LogBehaviours(SegmentBehaviours):
    """One observable behaviour a property."""

    @cached_property
    def follower_skips_newer_epochs(self) -> bool:
        """A follower appends no batch of an epoch newer than the one it fetches in (LG-3, KAFKA-18723)."""
        return self.append_per_batch

    @cached_property
    def refuses_unknown_targets(self) -> bool:
        """A broker refuses a negative target that it does not know (LO-15; from 3.9)."""
        return self.version >= (3, 9)

    @cached_property
    def lowest_target(self) -> int:
        """The smallest special target; what is below is an ordinary timestamp (LO-15).

        -2 earliest; from 3.0 -3 largest timestamp; from 3.5 -4 earliest local; from 3.9 -5 latest tiered; from 4.2 -6
        earliest pending upload.
        """
        return -2 - sum(self.version >= since for since in ((3, 0), (3, 5), (3, 9), (4, 2)))

    @cached_property
    def loading_recovers_epochs(self) -> bool:
        """A segment recovered because of its index files also tells its leader epochs (SEG-35; from 3.0)."""
        return self.version >= (3, 0)

    @cached_property
    def epochs_escape(self) -> bool:
        """A number that is none in the checkpoint of epochs is not said to be of a file (LG-78; from 3.1)."""
        return self.version >= (3, 1)

    @cached_property
    def stored_epochs_are_checked(self) -> bool:
        """The epochs in a checkpoint are taken one after another, as new ones are (from 2.7)."""
        return self.version >= (2, 7)

    @cached_property
    def loading_cuts_epochs_at_start(self) -> bool:
        """Loading moves the first epoch to the log start; from 3.0 only to its checkpoint, which may be smaller."""
        return self.version < (3, 0)

    @cached_property
    def deleting_all_forgets_epochs(self) -> bool:
        """Loading a log that ends before its start also empties the epochs (from 2.8)."""
        return self.version >= (2, 8)

    @cached_property
    def recovery_moves_recovery_point(self) -> bool:
        """After loading, everything counts as flushed even if the shutdown was not clean (up to 2.7)."""
        return self.version < (2, 8)

    @cached_property
    def idle_truncation_cuts_epochs(self) -> bool:
        """Truncating behind the end still removes epochs that begin there (from 2.6)."""
        return self.version >= (2, 6)

    @cached_property
    def start_moves_other_offsets(self) -> bool:
        """High watermark and recovery point are never before the log start (from 2.4.1)."""
        return self.version >= (2, 4, 1)

    @cached_property
    def full_truncation_keeps_high_watermark(self) -> bool:
        """After a full truncation to a larger offset, the high watermark stays before the log (2.4.0)."""
        return self.version < (2, 4, 1)

    @cached_property
    def full_truncation_moves_recovery_point(self) -> bool:
        """After a full truncation to a larger offset, that is the recovery point too (2.4.1 to 2.7.0)."""
        return (2, 4, 1) <= self.version < (2, 7, 1)

    @cached_property
    def search_start_survives_truncation(self) -> bool:
        """A search by timestamp begins where the log start once was, also after a truncation before it (LG-21; 3.5)."""
        return (3, 5) <= self.version < (3, 6)

    @cached_property
    def truncation_looks_for_transactions(self) -> bool:
        """Truncating sets the high watermark before it looks at transactions, and may fail (LG-11, LG-31; to 2.7.0)."""
        return self.version < (2, 7, 1)

    @cached_property
    def unstable_offset_has_to_exist(self) -> bool:
        """An open transaction is looked up, and it is an error if it is not there (LG-11; up to 3.7)."""
        return self.version < (3, 8)

    @cached_property
    def end_is_located(self) -> bool:
        """A high watermark that is moved to the log's end is known with its batch, and not looked up (from 2.7)."""
        return self.version >= (2, 7)

    @cached_property
    def loading_locates_moved_watermark(self) -> bool:
        """So is one that loading moves to the end, together with the log start (2.7 and 2.8)."""
        return (2, 7) <= self.version < (3, 0)

    @cached_property
    def watermark_is_located_last(self) -> bool:
        """A fetch holds the first unstable offset to the high watermark before that is looked up (LG-79; 2.4)."""
        return self.version < (2, 5)

    @cached_property
    def truncation_applies_any_watermark(self) -> bool:
        """Truncating also settles transactions where the high watermark stays as it is (LG-31; up to 3.0)."""
        return self.version < (3, 1)

    @cached_property
    def retention_starts_with_start_offset(self) -> bool:
        """Retention goes by start offset, size and time in this order; before, in the opposite one (from 3.0)."""
        return self.version >= (3, 0)

    @cached_property
    def shutdown_flushes_empty_segment(self) -> bool:
        """A clean shutdown flushes an active segment without records too, which opens its indexes (from 3.2)."""
        return self.version >= (3, 2)
