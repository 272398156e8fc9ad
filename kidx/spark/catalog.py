"""Tables of a catalog (``CREATE TABLE ... USING kafka_segments``), whose options travel in the table's schema.

Spark passes the options of ``CREATE TABLE`` to a source in Python when it requests the columns, but no options when it
reads the table. Spark stores the schema, so the metadata of the first column contains the options.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

METADATA: Final = "kafka_segments"
"""Key of the options in the metadata of a column."""
_OPTION: Final = "option."
"""Prefix of an option's name among the properties of a table."""
# Connection options begin with this prefix; two of them are used.
_CONNECTION: Final = "kafka."
_USED: Final = frozenset({"kafka.isolation.level", "kafka.check.crcs"})


def table_options(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of a table that is being created, or None if Spark passed the options of a query.

    Args:
        properties: the options of a query; or the properties of a table, in which each option's name begins with
            ``option.``.
    """
    if "provider" not in properties:
        return None
    options = {
        name.removeprefix(_OPTION): value for name, value in properties.items() if name.lower().startswith(_OPTION)
    }
    if (path := properties.get("path")) is not None:
        # A catalog writes a local path as file:/data.
        options["path"] = path.removeprefix("file:") if path.startswith("file:/") and "://" not in path else path
    # Options of a connection are not used, and may hold passwords.
    return {
        name: value
        for name, value in options.items()
        if not name.lower().startswith(_CONNECTION) or name.lower() in _USED
    }


def with_options(columns: str, options: Mapping[str, str]) -> StructType:
    """Return the schema of a table, with the options of the table in its metadata.

    Args:
        columns: columns of the content, as DDL.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 -- only for tables
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415

    from kidx.tables.columns import arrow_schema, columns_in  # noqa: PLC0415 -- not when Spark looks for sources

    first, *others = from_arrow_schema(arrow_schema(columns_in(columns))).fields
    return StructType(
        [StructField(first.name, first.dataType, first.nullable, {METADATA: json.dumps(options)}), *others]
    )


def kept_options(schema: StructType) -> dict[str, Any]:
    """Return the options in the metadata of a schema; empty if it is not the schema of a table."""
    kept = [json.loads(field.metadata[METADATA]) for field in schema.fields if METADATA in (field.metadata or {})]
    return kept[0] if kept else {}
