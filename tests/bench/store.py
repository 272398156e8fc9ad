"""Requests of the verification of a fleet to an object store, by kind and by step, counted by an S3 test server.

``python3 bootstrap.py python -m tests.bench.store``. The workers' functions are called without Spark; Spark and the
tables add requests per task, not per segment.
"""

from __future__ import annotations

import logging
import re
import tempfile
from collections import Counter
from pathlib import Path

import fsspec
import pyarrow as pa
from moto.server import ThreadedMotoServer
from rich.console import Console

from kidx.spark.fleet.listing import Request, list_roots, roots_of
from kidx.spark.fleet.tables import LISTING, VERDICTS
from kidx.spark.fleet.work import settle, verify_rows
from tests.bench.fleet import make
from tests.bench.table_report import machine, print_table

REQUEST = re.compile(r'"(?P<method>[A-Z]+) (?P<target>\S+) HTTP')
PER_PARTITION = 20


class Requests(logging.Handler):
    """Counter of requests to the server by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        found = REQUEST.search(record.getMessage())
        if found is not None:
            is_listing = found["method"] == "GET" and "list-type" in found["target"]
            self.counts["LIST" if is_listing else found["method"]] += 1

    def taken(self) -> str:
        """Return the counts since the last call."""
        told = ", ".join(f"{number:,} {kind}" for kind, number in sorted(self.counts.items())) or "none"
        self.counts.clear()
        return told


def measure(segments: int, requests: Requests) -> list[str]:
    """Measure one row of the table."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"key": "key", "secret": "secret", "endpoint_url": f"http://{host}:{port}"}
        store, bucket = fsspec.filesystem("s3", skip_instance_cache=True, **options), f"fleet{segments}"
        store.mkdir(bucket)
        with tempfile.TemporaryDirectory(prefix="kidx-store-") as place:
            make(Path(place), segments, 6600, PER_PARTITION)
            store.put(str(Path(place, "data")), f"{bucket}/data", recursive=True)
        requests.taken()
        asked = Request(None, None, options)
        roots = roots_of([f"s3://{bucket}/data"], options)
        numbers = pa.record_batch([pa.array(range(len(roots)))], ["id"])
        partitions = pa.Table.from_batches(list_roots(roots, asked, iter([numbers])), LISTING).to_pylist()
        told = [requests.taken()]
        wanted = [row | {"segments": [each]} for row in partitions for each in row["segments"]]
        batches = pa.Table.from_pylist(wanted, LISTING).to_batches()
        verdicts = pa.Table.from_batches(verify_rows(asked, lambda _: None, iter(batches)), VERDICTS)
        told.append(requests.taken())
        known = {each["key"]: each for each in verdicts.to_pylist()}
        for row in partitions:
            settle(asked, [row], known)
        return [f"{segments} in {len(partitions)} partitions", *told, requests.taken()]
    finally:
        server.stop()


def main() -> None:
    requests = Requests()
    logger = logging.getLogger("werkzeug")
    logger.setLevel(logging.INFO)
    logger.handlers, logger.propagate = [requests], False
    rows = [measure(segments, requests) for segments in (20, 40, 80)]
    console = Console(width=140)
    console.print(machine("s3fs", "moto"))
    print_table(console, ("segments", "listing", "verifying", "settling"), rows)


if __name__ == "__main__":
    main()
