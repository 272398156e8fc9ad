"""Every segment of a fleet verified on Spark: the same verdicts and findings as on one machine, kept as tables.

    from kidx import spark as kidx_spark
    from kidx.spark import fleet

    spark = kidx_spark.session()
    result = fleet.verify(spark, ["/mnt/broker1", "/mnt/broker2"], out="/data/verified", run_id="2026-11-21")
    print(result.verdict, result.report)

What is under ``out`` is in :mod:`kidx.spark.fleet.tables`. A run that was cut off goes on where it was when it is
started again with the same ``run_id``; one that was complete gives the same tables again.
"""

from kidx.spark.fleet.run import FleetVerification, verify
from kidx.spark.fleet.trends import Trend, compare

__all__ = ["FleetVerification", "Trend", "compare", "verify"]
