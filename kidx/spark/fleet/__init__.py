"""Verification of a fleet on Spark: the same verdicts and findings as on one machine, written as tables.

    from kidx import spark as kidx_spark
    from kidx.spark import fleet

    spark = kidx_spark.session()
    result = fleet.verify(spark, ["/mnt/broker1", "/mnt/broker2"], out="/data/verified", run_id="2026-11-21")
    print(result.verdict, result.report)

:mod:`kidx.spark.fleet.tables` describes the tables under ``out``. An interrupted run continues when it is started again
with the same ``run_id``. A complete run writes the same tables again.
"""

from kidx.spark.fleet.run import FleetVerification, verify
from kidx.spark.fleet.trends import Trend, compare

__all__ = ["FleetVerification", "Trend", "compare", "verify"]
