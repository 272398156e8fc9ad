"""Entry point with which every Spark session knows ``kafka_segments``.

Spark registers the ``DefaultSource`` of each top-level module named ``pyspark_…``; the wheel carries this file as one.
"""

from kidx.spark.source import KafkaSegmentsSource as DefaultSource

__all__ = ["DefaultSource"]
