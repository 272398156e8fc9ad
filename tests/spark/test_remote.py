"""Segments in an fsspec store that other processes reach by its URL: one with the WebHDFS protocol."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from kidx.spark.metrics import totals

pytestmark = pytest.mark.spark

START = 1_700_000_000_000


class Hdfs(BaseHTTPRequestHandler):
    """Server of directory listings and ranges of files, like a name node and its data nodes; errors, too."""

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name.lower(): values[0] for name, values in parse_qs(url.query).items()}
        below = unquote(url.path).removeprefix("/webhdfs/v1").strip("/")
        path = self.server.root / below
        if not path.exists():
            error = {"exception": "FileNotFoundException", "message": f"File {below} does not exist."}
            return self.answer(404, {"RemoteException": error})
        operation = query["op"].upper()
        if operation == "GETFILESTATUS":
            return self.answer(200, {"FileStatus": status(path, "")})
        if operation == "LISTSTATUS":
            entries = [status(each, each.name) for each in sorted(path.iterdir())]
            return self.answer(200, {"FileStatuses": {"FileStatus": entries}})
        start = int(query.get("offset", 0))
        data = path.read_bytes()[start : start + int(query["length"])]
        self.server.sent += len(data)
        return self.answer(200, data)

    def answer(self, code, content):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


def status(path, name):
    found = path.stat()
    kind = "DIRECTORY" if path.is_dir() else "FILE"
    return {"pathSuffix": name, "type": kind, "length": found.st_size, "modificationTime": int(found.st_mtime * 1000)}


@pytest.fixture
def store(long_log):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hdfs)
    server.root, server.sent = long_log, 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.thorough
def test_a_narrow_question_asks_a_remote_store_for_little(segments, store, tmp_path):
    url = f"webhdfs://127.0.0.1:{store.server_port}/"
    bounds = {"startingTimestamp": START + 25_000_000, "endingTimestamp": START + 25_050_000}
    frame = segments(url, metrics=tmp_path, **bounds)
    assert sorted(row.offset for row in frame.select("offset").collect()) == list(range(25_000, 25_050))
    counted = totals(tmp_path).bytes_read
    assert counted <= store.sent < counted + 1000 < 200_000
    rows = segments(url, "segments").select("path", "size", "offset_entries").collect()
    assert {row.path.rsplit("/", 2)[1] for row in rows} == {"long-0"}
    assert all(row.path.startswith("webhdfs://") and row.offset_entries > 200 for row in rows)
    assert segments(url).count() == 40_000
