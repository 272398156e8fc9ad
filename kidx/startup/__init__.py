"""Prediction of a broker's start: may it be started, and how would that change its log directories? Nothing is written.

The checks follow ``LogManager`` and the files that KRaft loads. The effect on a log is simulated by the loader and the
recovery of the release (:class:`kidx.log.UnifiedLog`), which work on a view of its files.
"""

from __future__ import annotations

from kidx.startup.answers import Later, PartitionStart, Remark, SegmentChange
from kidx.startup.prediction import predict
from kidx.startup.simulation import recovered_end
from kidx.startup.start import Start

__all__ = ["Later", "PartitionStart", "Remark", "SegmentChange", "Start", "predict", "recovered_end"]
