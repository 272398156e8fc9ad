"""Verifies drawer://data twice through Spark Connect, a file changed in between, and prints what was found.

The arguments are the file, and Spark's settings in JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kidx.spark import fleet


def main() -> None:
    spark = SparkSession.builder.remote("local[2,4]").config(map=json.loads(sys.argv[2])).getOrCreate()
    attempts = []
    for changed in (None, sys.argv[1]):
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
