"""What differs in what the cleaner leaves of a compacted log; asked for by :mod:`kidx.log.cleaning`."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from kidx.dialect.leader import LeaderBehaviours


class CleaningBehaviours(LeaderBehaviours):
    """One observable behaviour a property."""

    @cached_property
    def deletes_have_horizons(self) -> bool:
        """A batch says itself when its tombstones, or its marker, may go (KIP-534; CL-10; from 3.1)."""
        return self.version >= (3, 1)

    @cached_property
    def keeps_last_batch_cleaned(self) -> Literal["", "round", "replicated"]:
        """Which batch stays though nothing is left in it: the last of the round (3.9.2, 4.0 to 4.3), of the log (4.4).

        The batch that ends where the round ends, or that ends at the high watermark (CL-14).
        """
        if self.version >= (4, 4):
            return "replicated"
        return "round" if self.version >= (3, 9, 2) else ""

    @cached_property
    def markers_count_as_keys(self) -> bool:
        """A transaction marker goes when a later record has the bytes of its key (CL-9; up to 2.8)."""
        return self.version < (3, 0)

    @cached_property
    def cleaning_converts_old_formats(self) -> bool:
        """What is left of batches of magic 0 and 1 is written as magic 2 (KIP-724; from 4.0)."""
        return self.version >= (4, 0)

    @cached_property
    def cleaning_ends_at_last_stable(self) -> bool:
        """Nothing is cleaned from the last stable offset on; before, from the first open transaction (from 3.1)."""
        return self.version >= (3, 1)

    @cached_property
    def cleaning_counts_gaps(self) -> bool:
        """A segment is clean up to the next one, though its last records may be gone (KAFKA-8764; from 2.4.1)."""
        return self.version >= (2, 4, 1)

    @cached_property
    def aborted_are_sought_to_segment_end(self) -> bool:
        """Of a group's last segment, all aborted transactions are known; before, those of the cleaned range (2.8)."""
        return self.version >= (2, 8)

    @cached_property
    def empty_ranges_hold_no_segment(self) -> bool:
        """Between an offset and itself there is no segment, not even that which the offset lies in (from 2.5)."""
        return self.version >= (2, 5)

    @cached_property
    def empty_segments_join_any_group(self) -> bool:
        """A segment without records is merged into the one before whatever its offsets are (from 3.0)."""
        return self.version >= (3, 0)

    @cached_property
    def replaced_snapshots_go_one_by_one(self) -> bool:
        """The snapshot of a replaced segment goes when its files are renamed; later, when all have been (3.0)."""
        return (3, 0) <= self.version < (3, 1)

    @cached_property
    def swapped_segments_are_believed(self) -> bool:
        """Opening renames the files of an interrupted swap, and deletes what they replace (from 3.0).

        Before, the segment is recovered, which makes its indexes anew.
        """
        return self.version >= (3, 0)
