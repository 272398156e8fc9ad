"""The compression codecs of record batches, each framed as Kafka's Java libraries frame it."""

from __future__ import annotations

from kidx.records.codecs.codec import Codec, compress, decompress
from kidx.records.codecs.source import Source

__all__ = ["Codec", "Source", "compress", "decompress"]
