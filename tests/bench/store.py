"""Requests of the verification of a fleet to an object store, by kind and by step, counted by an S3 test server.

``python3 bootstrap.py python -m tests.bench.store [--markdown FILE]``. The workers' functions are called without Spark;
Spark and the tables add requests per task, not per segment.
"""

from __future__ import annotations

import argparse
import logging
import re
import tempfile
from collections import Counter
from pathlib import Path

import fsspec
import pyarrow as pa
from moto.server import ThreadedMotoServer
from rich.console import Console

from kidx.spark.fleet.listing import SEGMENT_COST, Request, list_roots, roots_of
from kidx.spark.fleet.run import tasks_of
from kidx.spark.fleet.tables import LISTING, VERDICTS
from kidx.spark.fleet.work import settle_partition, verify_rows
from tests.bench.fleet import make
from tests.bench.frame import machine, markdown_table, print_table

REQUEST = re.compile(r'"(?P<method>[A-Z]+) (?P<target>\S+) HTTP')
PER_PARTITION = 20
SIZES = (20, 40, 80)
HEADS = ("segments in partitions", "listing", "verifying", "settling")
SCALED = ("step", "requests", "number", "dollars")
FLEET, PARTITIONS, BYTES, CORES = 10**6, 10_000, 10**15, 1000
DOLLARS = {"LIST": 5e-6, "PUT": 5e-6, "GET": 4e-7}
"""Usual price of one request."""
BYTES_PER_SECOND = 100e6
"""Assumed for each core."""
PAGE = """\
# Requests to an object store

`python3 bootstrap.py python -m tests.bench.store --markdown reports/store.md` counts the requests of the
verification of a fleet to an S3 test server, with {per_partition} segments per partition ({where}).

{measured}
## A million segments

The last row, scaled to {fleet:,} segments of 1 GB in {partitions:,} partitions. Listing needs one request per
partition and {more} more, plus one for each 1,000 names beyond the first 1,000. Verifying and settling need
the same number of requests per segment and per partition as above. The number of PUT requests is the number of
tasks in the model of `kidx/spark/fleet/run.py`: one file of verdicts each. Requests of Hadoop's committer are
not counted.

{scaled}
Reading {petabytes:g} PB at an assumed {speed:.0f} MB/s per core takes {cores:,} cores {hours:.1f} hours. Traffic
within a region is usually free. A worker needs disk space for one segment per core.
"""


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

    def taken(self) -> Counter[str]:
        """Return the counts since the last call."""
        taken, self.counts = self.counts, Counter()
        return taken


def measure(segments: int, requests: Requests) -> list[Counter[str]]:
    """Return the requests of each step for a fleet."""
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
        counted = [requests.taken()]
        wanted = [row | {"segments": [each]} for row in partitions for each in row["segments"]]
        batches = pa.Table.from_pylist(wanted, LISTING).to_batches()
        verdicts = pa.Table.from_batches(verify_rows(asked, lambda _: None, iter(batches)), VERDICTS)
        counted.append(requests.taken())
        known = {each["key"]: each["verdict"] for each in verdicts.to_pylist()}
        for row in partitions:
            settle_partition(asked, [row], known)
        return [*counted, requests.taken()]
    finally:
        server.stop()


def scaled(segments: int, listing: Counter[str], verifying: Counter[str], settling: Counter[str]) -> list[list[str]]:
    """Return the rows for a large fleet."""
    partitions = segments // PER_PARTITION
    numbers = [
        ("listing", "LIST", PARTITIONS + listing["LIST"] - partitions),
        ("verifying", "GET", FLEET * verifying["GET"] // segments),
        ("settling", "GET", PARTITIONS * settling["GET"] // partitions),
        ("tables", "PUT", tasks_of(BYTES + FLEET * SEGMENT_COST)),
    ]
    return [[step, kind, f"{number:,}", f"{number * DOLLARS[kind]:.2f}"] for step, kind, number in numbers]


def main() -> None:
    """Print the tables, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page to a file, too")
    path = parser.parse_args().markdown
    requests = Requests()
    logger = logging.getLogger("werkzeug")
    logger.setLevel(logging.INFO)
    logger.handlers, logger.propagate = [requests], False
    rows, counted = [], []
    for segments in SIZES:
        counted = measure(segments, requests)
        cells = [", ".join(f"{number:,} {kind}" for kind, number in sorted(each.items())) or "none" for each in counted]
        rows.append([f"{segments} in {segments // PER_PARTITION}", *cells])
    console = Console(width=140)
    print_table(console, HEADS, rows)
    large = scaled(SIZES[-1], *counted)
    print_table(console, SCALED, large)
    if path is not None:
        text = PAGE.format(
            per_partition=PER_PARTITION, where=machine("s3fs", "moto"), measured=markdown_table(HEADS, rows),
            fleet=FLEET, partitions=PARTITIONS, more=counted[0]["LIST"] - SIZES[-1] // PER_PARTITION,
            scaled=markdown_table(SCALED, large), petabytes=BYTES / 1e15, speed=BYTES_PER_SECOND / 1e6, cores=CORES,
            hours=BYTES / BYTES_PER_SECOND / CORES / 3600,
        )  # fmt: skip
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
