"""Location of a fleet's tables: a directory, or a URL that Hadoop or fsspec opens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from kidx.errors import ToolError
from kidx.spark.fleet.parquet import NAME, ParquetOverFsspec
from kidx.spark.fleet.tables import TABLES, ddl
from kidx.storage import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WITHOUT_KIDX: Final = re.compile(r"ModuleNotFoundError: No module named 'kidx['.]")
_PARTITIONED: Final = frozenset({"findings", "files"})
"""Tables whose files are in one directory per topic."""


class Output:
    """Tables of all runs under one directory or URL.

    Args:
        url: URL of the directory.
        options: options of fsspec, if Hadoop does not know the URL.

    Attributes:
        is_local: True if the URL is a directory of this machine.

    Raises:
        ToolError: neither Hadoop nor fsspec knows the URL.
    """

    def __init__(self, spark: SparkSession, url: str, options: dict[str, Any] | None = None) -> None:
        self.spark = spark
        self._store = Store(url.rstrip("/"), options or {})
        self.is_local = self._store.is_local
        self.url = self._store.root if self.is_local else self._store.url
        self._with_hadoop = self.is_local or knows(spark, self.url)
        if not self._with_hadoop:
            assert self._store.root is not None  # the property opens the store
            spark.dataSource.register(ParquetOverFsspec)

    def path(self, table: str, run_id: str) -> str:
        """Return the path or URL of a run's part of a table."""
        return f"{self.url}/{table}/run_id={run_id}"

    def write(self, frame: DataFrame, table: str, run_id: str, *, append: bool = False) -> None:
        """Write a run's part of a table; the rows of a task are readable as soon as the task has ended.

        ``append`` is True to keep the existing rows of the run, False to replace them.
        """
        writer = frame.write.mode("append" if append else "overwrite")
        path = self.path(table, run_id)
        if self._with_hadoop:
            writer = writer.option("mapreduce.fileoutputcommitter.algorithm.version", "2")
            (writer.partitionBy("topic") if table in _PARTITIONED else writer).parquet(path)
            return
        by = "topic" if table in _PARTITIONED else ""
        writer.format(NAME).options(by=by, storage=json.dumps(self._store.options)).save(path)

    def read(self, table: str, run_id: str) -> DataFrame:
        """Return a run's part of a table, with the columns in :data:`TABLES`; without rows if it does not exist."""
        schema = TABLES[table]
        # With the schema given, Spark does not read a topic named 007 as a number.
        reader = self.spark.read.schema(ddl(schema))
        if not self._with_hadoop:
            by = "topic" if table in _PARTITIONED else ""
            reader = reader.format(NAME).options(by=by, storage=json.dumps(self._store.options))
            return reader.load(self.path(table, run_id))
        try:
            frame = reader.parquet(self.path(table, run_id)).select(*schema.names)
            assert frame.schema is not None  # Spark Connect reads the schema only here
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return self.spark.createDataFrame([], ddl(schema))
        return frame

    def put(self, name: str, text: str) -> str:
        """Write a small document; return its path or URL."""
        path = f"{self.url}/{name}"
        if self.is_local:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text, "utf-8")
        elif self._with_hadoop:  # as a directory with one file in it, as Spark writes
            self.spark.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(path)
        else:
            self._store.write(f"{self._store.root}/{name}", text.encode())
        return path

    def get(self, name: str) -> str | None:
        """Return a document that :meth:`put` wrote; None if it does not exist."""
        path = f"{self.url}/{name}"
        if self.is_local:
            return Path(path).read_text("utf-8") if Path(path).exists() else None
        if not self._with_hadoop:
            return self._store.read_all(f"{self._store.root}/{name}").decode() or None
        try:
            rows = self.spark.read.text(path, wholetext=True).collect()
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return None
        return str(rows[0]["value"]).rstrip("\n") if rows else None


def reason_of_spark(error: Exception) -> str:
    """Return the reason why Spark failed, as one line: the first cause in the JVM, or the exception of a worker."""
    if _WITHOUT_KIDX.search(str(error)):
        return "the workers' Python has no kidx; pass --py-files kidx.zip, or install it there (docs/clusters.md)"
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith("SQLSTATE")] or [type(error).__name__]
    causes = [line.removeprefix("Caused by:").lstrip(": ") for line in lines if line.startswith((":", "Caused by:"))]
    if causes:
        return causes[-1]
    return lines[-1] if lines[0].endswith(":") else lines[0]  # the last line of a worker's traceback


def knows(spark: SparkSession, url: str) -> bool:
    """Return True if Hadoop has a file system for a URL.

    Raises:
        ToolError: the file system does not answer.
    """
    if "::" in url:
        return False
    try:
        assert spark.read.schema("value string").text(url).schema is not None
    except AnalysisException:
        return True  # Hadoop knows the protocol, but the path does not exist or is not text
    except Exception as error:
        if "UnsupportedFileSystem" in str(error) or "No FileSystem for scheme" in str(error):
            return False
        raise ToolError(f"{url} cannot be opened: {reason_of_spark(error)}") from error
    return True
