"""Defects of a cleaner: retained records, its checkpoint, and opening a log after the cleaner was killed.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from conformance.implementations.mutants.registry import PER_APPEND, START, Row, plant
from kidx.log import UnifiedLog

# fmt: off
plant(
    UnifiedLog,
    # -- retention --
    Row("CL-22", "cleans-young-segments", "Records younger than min.compaction.lag.ms are compacted.",
        "clean.cleanable_range._first_young", "log.config.min_compaction_lag_ms", "0"),
    Row("CL-13", "forgets-last-batches-of-producers", "The last batch of a producer is removed with its records.",
        "cleaner.record_filter.is_last_of_producer", START, "return False"),
    Row("CL-10b", "keeps-tombstones-for-good", "Tombstones are retained after their delete horizon.",
        "cleaner.record_filter.retains_tombstones", START, "return True"),
    Row("CL-10b", "drops-tombstones-at-once", "Tombstones are removed in the first round.",
        "cleaner.record_filter.retains_tombstones", START, "return False"),
    Row("CL-10b", "notes-no-horizon", "A batch with tombstones gets no delete horizon.",
        "cleaner.record_filter.next_delete_horizon", START, "return None"),
    Row("CL-12", "keeps-records-without-keys", "Records without keys are retained.",
        "cleaner.record_filter.retains_record", START, "if record.key is None: return True"),
    Row("CL-7", "ends-batches-with-their-last-record",
        "A batch that loses records gets the end offset of its last remaining record.",
        "cleaner.record_filter.rebuild", "batch.last_offset if is_new else None",
        "retained[-1].offset if is_new else None"),
    Row("CL-14b", "loses-the-end-of-the-log", "A batch that ends at the high watermark is removed with its records.",
        "cleaner.is_last", START, "return False"),
    Row("CL-14b", "keeps-the-last-batch-of-a-round",
        "The last batch of a round is retained even if it is not at the high watermark.",
        "cleaner.is_last", START, "return batch.next_offset == upper"),
    # -- transactions --
    Row("CL-8", "keeps-aborted-transactions", "Batches of an aborted transaction are retained.",
        "cleaner.transactions.is_discardable", "return True", "return False"),
    Row("CL-9a", "keeps-every-marker", "A marker that is no longer needed is retained.",
        "cleaner.transactions.is_discardable", "self._is_marker_discardable(batch)",
        "self._is_marker_discardable(batch) and False"),
    Row("CL-8", "forgets-aborted-transactions", "The cleaned segment has no transaction index.",
        "cleaner.transactions._is_marker_discardable", "self.index is not None", "False"),
    # -- segments and keys --
    Row("CL-3", "has-room-for-every-key", "The offset map is never full.",
        "cleaner.offset_map.is_full", START, "return False"),
    Row("CL-4", "merges-no-segments", "Small segments are not merged.",
        "cleaner.grouped", START, "return [[segment] for segment in segments]"),
    Row("CL-16", "keeps-snapshots-of-replaced-segments", "The producer snapshots of merged segments are retained.",
        "cleaner.delete_snapshot", START, "return"),
    Row("CL-5a", "appends-batches-one-by-one", "Each retained batch is a separate append, and may get an index entry.",
        "cleaner.write", "cleaned.append(b''.join(pieces), largest_offset=largest_offset, largest_timestamp=timestamp, "
        "shallow_offset=offset)", "for piece in pieces: cleaned.append(piece)", release=PER_APPEND),
    Row("CL-6", "keeps-the-grown-buffer", "A buffer that has grown keeps its size for the next segments.",
        "cleaner.buffer.restore", START, "return", release=PER_APPEND),
    Row("CL-2", "trusts-every-checkpoint", "A cleaner checkpoint past the log end is taken as the log end.",
        "clean", START, "checkpoint = None if checkpoint is None else min(checkpoint, self.end_offset)"),
    # -- killed --
    Row("CL-18b", "drops-swapped-segments", "Opening deletes files that end with .swap.",
        "__init__", START, "for file in Path(directory).glob('*.swap'): file.unlink()"),
    Row("CL-17", "takes-half-written-segments", "Opening treats .cleaned files like .swap files.",
        "__init__", START, "for file in Path(directory).glob('*.cleaned'): file.rename(file.with_suffix('.swap'))"),
)
# fmt: on
