"""Verification of drawer://data through Spark Connect, repeated after each change of a file; it prints the findings.

The arguments are Spark's settings in JSON, and the files.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kidx.spark import fleet


def main() -> None:
    spark = SparkSession.builder.remote("local[2,4]").config(map=json.loads(sys.argv[1])).getOrCreate()
    attempts = []
    for changed in (None, *sys.argv[2:]):
        if changed is not None:
            path = Path(os.environ["DRAWER"], changed)
            content = bytearray(path.read_bytes())
            content[7] ^= 64
            path.write_bytes(content)
        result = fleet.verify(spark, ["drawer://data"], out="drawer://out", run_id="one")
        attempts.append({
            "findings": [finding.to_json() for finding in result.findings()],
            "files": result.frame("files").count(),
            "resumed": result.resumed,
            "report": str(result.report),
        })  # fmt: skip
    print(json.dumps(attempts))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
