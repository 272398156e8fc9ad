"""Program that reads a log directory with the installed Spark, and prints each result as a line of JSON.

``python tests/support/spark_cases.py DIRECTORY PLACE``: ``DIRECTORY`` has topic ``t``, and ``PLACE`` is for output.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pyspark
from streaming_query import begin

from kidx.spark import register, session
from kidx.spark.metrics import totals
from kidx.spark.starting import FEW_ROWS

LIMITS = {
    "maxOffsetsPerTrigger": "25",
    "minOffsetsPerTrigger": "25",
    "maxTriggerDelay": "1m",
    "maxBytesPerTrigger": "1000",
}
CONDITION = "offset > 100 and topic = 't' and partition = 0"


def read(spark, data, **options):
    return spark.read.format("kafka_segments").options(**options).load(data)


def follow(spark, data, place, name, trigger=None, **options):
    """Run a query until it has read everything; return its rows and the sizes of its micro-batches."""
    stream = spark.readStream.format("kafka_segments").option("subscribe", "t").options(**options).load(data)
    writer = stream.select("partition", "offset").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", f"{place}/{name}/checkpoint").option("path", f"{place}/{name}/rows")
    query = begin(writer) if trigger is None else begin(writer.trigger(**trigger), "awaitTermination")
    query.stop()
    rows = Counter((row.partition, row.offset) for row in spark.read.parquet(f"{place}/{name}/rows").collect())
    sizes = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    return {"rows": len(rows), "most": max(rows.values()), "sizes": sizes}


def pushed(spark, data, place, name):
    found = read(spark, data, pushDown="true", metrics=f"{place}/{name}").where(CONDITION).count()
    cost = totals(Path(place) / name)
    return {"rows": found, "pushed": cost.pushed, "bytes": cost.log_bytes}


def table(spark, data):
    spark.sql(f"CREATE TABLE of_t USING kafka_segments OPTIONS (path '{data}', subscribe 't')")
    try:
        rows = spark.sql("SELECT count(*) FROM of_t WHERE offset > 100").first()[0]
    finally:
        spark.sql("DROP TABLE of_t")
    return {"rows": rows, "files": len(list(Path(data).rglob("*.log")))}


def cases(spark, data, place):
    """Yield name and function of each case; the function returns the result."""
    yield "rows", lambda: len(read(spark, data).collect())
    yield "count", lambda: read(spark, data).count()
    yield "committed", lambda: read(spark, data, isolationLevel="read_committed").count()
    yield "batches", lambda: read(spark, data, content="batches").count()
    yield "unknown", lambda: read(spark, data, subscripe="t").count()
    yield "pushed", lambda: pushed(spark, data, place, "pushed")
    yield "table", lambda: table(spark, data)
    yield "stream", lambda: follow(spark, data, place, "stream")
    yield "again", lambda: follow(spark, data, place, "stream", failOnDataLoss="false")
    yield "stream_committed", lambda: follow(spark, data, place, "committed", isolationLevel="read_committed")
    yield "available_now", lambda: follow(spark, data, place, "now", {"availableNow": True})
    for name, value in LIMITS.items():
        yield name, partial(follow, spark, data, place, name, {"availableNow": True}, **{name: value})


def write(result):
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


def main():
    data, place = sys.argv[1:]
    settings = {"spark__driver__memory": "700m", "spark__sql__warehouse__dir": f"{place}/warehouse"}
    settings |= {name.replace(".", "__"): value for name, value in FEW_ROWS.items()}
    spark = session("local[2]", spark__sql__shuffle__partitions="1", **settings)
    register(spark)
    write({"version": pyspark.__version__})
    for name, case in cases(spark, data, place):
        try:
            result = case()
        except Exception as error:  # noqa: BLE001 -- each error is a result
            result = {"error": str(error)}
        write({name: result})
    spark.stop()


if __name__ == "__main__":
    main()
