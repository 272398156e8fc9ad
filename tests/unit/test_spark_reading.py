"""Records for Spark are the same by compiled columns as by the readable reference, damage included."""

from pathlib import Path

import pyarrow as pa
import pytest

from kidx.errors import ToolError
from kidx.java_numbers import LONG_MAX
from kidx.records import SimpleRecord, build_batch
from kidx.tables.columns import RowBuffer
from kidx.tables.conditions import Conditions
from kidx.tables.indexes import Counter
from kidx.tables.options import read_options
from kidx.tables.reading import Reading
from kidx.tables.splits import plan_pieces

GOLDEN = Path(__file__).parents[1] / "golden"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPES = {"key": pa.binary(), "value": pa.binary(), "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
SCHEMA = pa.schema(TYPES | {"timestamp": pa.timestamp("us", "UTC"), "timestampType": pa.int32(), "headers": HEADERS})


def rows(directory: Path, schema: pa.Schema = SCHEMA, conditions: Conditions | None = None, **options: str) -> list:
    """What a query reads, and what it fails with."""
    conditions = conditions or Conditions()
    loose = options.get("failOnDataLoss") == "false"
    buffer, reading, found = RowBuffer(schema), Reading(conditions, not loose, options.get("checkCrcs") != "false"), []
    try:
        for task in plan_pieces(read_options({"path": str(directory)} | options), conditions, Counter()):
            for piece in task:
                for batch in reading.records(piece, buffer, Counter()):
                    found += batch.to_pylist()
    except ToolError as error:
        found.append(str(error))
    for batch in buffer.flush():
        found += batch.to_pylist()
    return found


@pytest.fixture
def read(monkeypatch):
    """What :func:`rows` gives, which has to be the same both ways."""

    def both(*arguments: object, **options: str) -> list:
        found = []
        for compiled in (False, True):
            monkeypatch.setattr("kidx.tables.reading.worth_compiling", lambda _, compiled=compiled: compiled)
            found.append(rows(*arguments, **options))
        assert found[0] == found[1]
        return found[0]

    return both


@pytest.mark.parametrize("release", ["2.4.1", "4.4.0"])
def test_all_records_of_brokers(release, read):
    found = read(GOLDEN / release)
    assert len(found) > 100
    assert any(row["headers"] for row in found)
    assert any(row["key"] is None for row in found)


def test_only_wanted_records_and_columns(read):
    """Offsets and times that begin and end inside batches."""
    times = sorted({row["timestamp"] for row in read(GOLDEN / "4.4.0")})
    middle = [int(times[len(times) * part // 3].timestamp() * 1000) for part in (1, 2)]
    conditions = Conditions(least_offset=3, largest_offset=LONG_MAX, least_time=middle[0], largest_time=middle[1])
    found = read(GOLDEN / "4.4.0", pa.schema([("offset", pa.int64()), ("value", pa.binary())]), conditions)
    assert found
    assert set(found[0]) == {"offset", "value"}


@pytest.mark.parametrize("loss", ["true", "false"])
def test_damage(loss, read, tmp_path):
    """A later record's size is wrong and the checksum not looked at: those before it come, or one line that says so."""
    log = tmp_path / "logs" / "t-0" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    batch = bytearray(build_batch([SimpleRecord(n, b"key", b"value") for n in range(3)]))
    batch[61 + 2 * 15] = 0x7E
    log.write_bytes(build_batch([SimpleRecord(0, None, None)] * 2) + _at(bytes(batch), 2))
    found = read(tmp_path / "logs", failOnDataLoss=loss, checkCrcs="false")
    texts = [row for row in found if isinstance(row, str)]
    assert [row["offset"] for row in found if not isinstance(row, str)] == [0, 1, 2, 3]
    assert len(texts) == (loss == "true")
    assert all("record" in text and log.name in text for text in texts)


def _at(batch: bytes, base_offset: int) -> bytes:
    return base_offset.to_bytes(8) + batch[8:]
