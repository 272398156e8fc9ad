"""Start of a streaming query, repeated if the machine is too busy for Spark."""

from __future__ import annotations


def begin(sink, wait="processAllAvailable"):
    """Start the query of a writer, and wait until it has read the existing records.

    Spark gives the Python process of a streaming source 10 s to start, and no setting changes that. On a machine that
    is too busy for it, the query is started again.

    Args:
        sink: writer.
        wait: method of the query that waits; ``awaitTermination`` for a query that ends on its own.
    """
    from pyspark.errors import StreamingQueryException

    for left in reversed(range(5)):
        query = sink.start()
        try:
            getattr(query, wait)()
        except StreamingQueryException as error:
            query.stop()
            if not left or "worker failed to connect back" not in str(error):
                raise
        else:
            break
    return query
