"""The chunks of a run's machines, as helpers take them ahead of the run."""

from __future__ import annotations

import time

from conformance.runs.chunk_queue import ChunkQueue, ChunkQueues
from conformance.runs.chunk_result import ChunkResult
from conformance.runs.chunks import chunks_of


def chunks(machine, examples=20):
    return list(chunks_of(machine, examples, 0))


def taken(tables):
    found = tables.take()
    return None if found is None else (found[0].machine, found[1].number)


def test_workers_continue_with_the_next_machine_and_the_run_finds_their_results():
    tables = ChunkQueues(ChunkQueue(name, chunks(name), None) for name in ("offset", "time"))
    assert taken(tables) == ("offset", 0)  # before the run has come to it
    offset = tables.advance_to("offset", chunks("offset"), None)
    assert [chunk.number for chunk in (offset.take(), tables.take()[1]) if chunk] == [1, 0]
    assert offset.take() is None
    time_table, chunk = tables.take()
    assert (time_table.machine, chunk.number) == ("time", 1)
    time_table.put(chunk, ChunkResult(1))
    assert tables.advance_to("time", chunks("time"), None) is time_table
    assert time_table.is_done(time_table.chunks[1])
    assert time_table.wait(time_table.chunks[1]).number == 1
    assert tables.take() is None


def test_remaining_chunks_of_a_skipped_machine_are_not_run():
    tables = ChunkQueues(ChunkQueue(name, chunks(name), None) for name in ("offset", "segment", "time"))
    offset = tables.advance_to("offset", chunks("offset"), None)
    tables.advance_to("time", chunks("time"), None)
    assert offset.take() is None
    assert taken(tables) == ("time", 0)


def test_a_machine_that_cannot_start_early_is_run_from_its_own_chunks():
    tables = ChunkQueues(())
    assert tables.take() is None
    late = tables.advance_to("time", chunks("time", 10), time.monotonic() - 1)
    assert late.is_late()
    assert taken(tables) == ("time", 0)
    assert tables.take() is None
