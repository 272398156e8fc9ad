"""What differs between the index objects of releases (clauses AI, OI, TI, TX)."""

from __future__ import annotations

from functools import cached_property

from kidx.dialect.columns import Columns


class IndexBehaviours(Columns):
    """One observable behaviour a property; each follows from the columns."""

    @cached_property
    def scala_texts(self) -> bool:
        """Exceptions carry the texts of the Scala classes: ``requirement failed: ``, full stops (X1, X2)."""
        return self.index in ("X1", "X2")

    @cached_property
    def position_mismatch_is_state(self) -> bool:
        """A position that does not fit the entries is an IllegalState, not an InvalidArgument (OI-6; X3+)."""
        return not self.scala_texts

    @cached_property
    def unmapped_trim_is_noop(self) -> bool:
        """``trim_to_valid_size`` does nothing once unmapped (AI-16; X4+)."""
        return self.index in ("X4", "X5", "X6")

    @cached_property
    def close_trims(self) -> bool:
        """``close`` trims the file to its entries before unmapping it (X1–X5)."""
        return self.index != "X6"

    @cached_property
    def resize_unmaps_first(self) -> bool:
        """``resize`` gives up the old mapping before it sets the length (KAFKA-19390; AI-44b).

        Shows when the length is refused: the index is left closed. Within X4 only from 3.9.2, 4.0.2 and 4.1.1 on.
        """
        return self.unmapped_trim_is_noop and self.release not in ("4.0.1", "4.1.0")

    @cached_property
    def index_rules(self) -> str:
        """Two releases of the same text behave alike in everything that an index object shows."""
        return self.index if self.resize_unmaps_first or self.index != "X4" else "X4a"

    @cached_property
    def unmapped_flush_is_noop(self) -> bool:
        """``flush`` does nothing once unmapped (AI-19; X6)."""
        return self.index == "X6"

    @cached_property
    def flush_syncs_file(self) -> bool:
        """``flush`` also syncs the file, so that a changed length is durable (AI-23, KAFKA-20979; X6)."""
        return self.index == "X6"

    @cached_property
    def strict_txn_version(self) -> bool:
        """Any version but 0 in a ``.txnindex`` is refused, negative ones included (TX-7; X6)."""
        return self.index == "X6"

    @cached_property
    def txn_text_has_version(self) -> bool:
        """``AbortedTxn(version=0, …)`` in texts (TX-12; up to X5)."""
        return self.index != "X6"
