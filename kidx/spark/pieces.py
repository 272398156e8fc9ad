"""What a task of the source reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    from kidx.tables.splits import Piece


class Pieces(InputPartition):
    """The work of one task."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(len(pieces))
        self.pieces = tuple(pieces)
