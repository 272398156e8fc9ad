"""Defects of the verification of transactions before they begin.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement.
"""

from __future__ import annotations

from conformance.implementations.mutants.registry import START, Row, plant
from kidx.log import UnifiedLog

# fmt: off
plant(
    UnifiedLog,
    Row("LG-45a", "guards-outlive-transactions", "A verification guard is accepted for the next transaction, too.",
        "producer_state.end_verification", START, "return"),
    Row("LG-45a", "open-in-any-epoch", "A transaction of another producer epoch counts as open.",
        "producer_state.has_ongoing", "entry.producer_epoch == epoch or not self.dialect.verification_knows_epochs",
        "True"),
    Row("LG-45b", "the-first-sequence-counts", "A smaller sequence number of a later verification is not stored.",
        "producer_state.verify", START, "if producer_id in self.verifications: return self.verifications[producer_id]"),
    Row("LG-45b", "sequences-are-not-verified", "A batch may begin above the verified sequence number.",
        "producer_state.append_info._check_verified", START, "return"),
    Row("LG-45d", "markers-of-the-same-epoch",
        "A marker of transaction version 2 is accepted with the epoch of its transaction.",
        "producer_state.append_info._ends_its_epoch", START, "return False"),
)
# fmt: on
