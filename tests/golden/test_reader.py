"""The exact reader of the test vectors, on the files of real brokers: it finds the records that the brokers found."""

import importlib.util
from pathlib import Path

import pytest

from conformance.experiments.golden import load_corpus

GOLDEN = Path(__file__).parent
CORPORA = {path.parent.name: load_corpus(path.parent) for path in sorted(GOLDEN.glob("*.*.*/corpus.json"))}


@pytest.fixture(scope="module")
def reader():
    spec = importlib.util.spec_from_file_location("reader", GOLDEN.parent / "vectors" / "exact_reader.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=CORPORA)
def test_the_reader_finds_the_records_that_the_broker_found(corpus, reader):
    release = [int(number) for number in corpus.release.split(".")]
    compared = 0
    for partition in corpus.partitions:
        paths = partition.logs(corpus.directory)
        logs = [path.read_bytes() for path in paths]
        for answer in partition.answers["read_uncommitted"]:
            if answer.target < 0 or answer.error is not None:
                continue
            try:
                found = reader.of_logs(int(paths[0].stem), logs, release, "list_offsets", answer.target)
            except NotImplementedError:
                continue
            assert (found or (None, None))[:2] == (answer.timestamp, answer.offset), (partition.name, answer)
            compared += 1
    assert compared > 100
