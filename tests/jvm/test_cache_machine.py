"""The cache machine against Kafka's own ``RemoteIndexCache``, and the result of each corruption of the cache."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from machine_runs import no_divergence, observe, run_machine
from thorough_params import thorough_param

from conformance.implementations.jvm.cache import JvmCache
from conformance.kafka.releases import RELEASES
from conformance.lockstep import DivergenceError
from conformance.machines.cache import CacheLockstep, CacheMachine
from conformance.operations import Operation
from conformance.runs.replay import load_regression_traces, replay_operations
from kidx.dialect import dialect_of

pytestmark = pytest.mark.jvm

HAVING = tuple(release for release in RELEASES if dialect_of(release).has_remote_index_cache)
FEW = ("3.6.2", "4.0.2", "4.4.0")
ERAS = ("3.6.2", "3.9.2", "4.0.2", "4.1.0", "4.2.2", "4.3.1", "4.4.0")
ID = "b-_UbGhWQSyTrDfNnQxAAw"
FILES = {
    ".index": struct.pack(">4i", 5, 61, 9, 161),
    ".timeindex": struct.pack(">qiqi", 1000, 2, 1010, 5),
    ".txnindex": struct.pack(">h4q", 0, 7, 101, 104, 105),
}
STORED = [Operation("store_index", (ID, kind, "gives", content.hex())) for kind, content in FILES.items()]
OPENED = Operation("open_cache", (1 << 20, -1, 0))
FETCHED = Operation("fetch_entry", (ID, 100, False))


@pytest.mark.parametrize("releases", [FEW, thorough_param(HAVING)], ids=["few", "all"])
def test_foreign_names_and_damaged_files_end_the_start(releases, scratch):
    """The exception is corruption that the checks of the indexes do not detect."""
    lockstep = CacheLockstep([JvmCache(release) for release in releases], scratch)
    closed = Operation("crash_cache")
    whole = {}
    for name in ("README", ".DS_Store", "lost+found", ".nfs0001", "0_notauuid.index"):
        foreign = Operation("damage_cached_file", (name, "write_file", ("",)))
        whole[name] = observe(lockstep, OPENED, foreign, closed, OPENED)[-1].outcome.error
    assert set(whole.values()) == {"out_of_bounds", "invalid_argument"}
    kinds = {}
    for kind, how, arguments in (
        (".index", "pad_file", (8, 0)),
        (".index", "pad_file", (1, 0)),
        (".timeindex", "pad_file", (12, 0)),
        (".timeindex", "pad_file", (1, 0)),
        (".txnindex", "cut_file", (10,)),
        (".txnindex", "zero_range", (0, 34)),
    ):
        damage = Operation("damage_cached_file", (f"100_{ID}{kind}", how, arguments))
        *_, start = observe(lockstep, *STORED, OPENED, FETCHED, closed, damage, OPENED)
        kinds[kind, how, arguments] = start.outcome.error
    opened = [damage for damage, error in kinds.items() if error is None]
    assert opened == [(".index", "pad_file", (8, 0)), (".txnindex", "cut_file", (10,))]
    assert {error for error in kinds.values() if error} == {"corrupt"}


@pytest.mark.parametrize("releases", [FEW, thorough_param(HAVING)], ids=["few", "all"])
@pytest.mark.parametrize(
    ("kind", "bad", "heals"),
    [(".index", bytes(9), True), (".timeindex", bytes(13), True), (".txnindex", bytes(34), False)],
)
def test_a_corrupt_file_from_remote_storage(kind, bad, heals, releases, scratch):
    """Of a transaction index, the next start fails although storage is sound again; another request heals it."""
    lockstep = CacheLockstep([JvmCache(release) for release in releases], scratch)
    bad = Operation("store_index", (ID, kind, "gives", bad.hex()))
    before = (*STORED, bad, OPENED, FETCHED, *STORED)
    _, *_, start = observe(lockstep, *before, Operation("crash_cache"), OPENED)
    assert start.outcome.error == (None if heals else "corrupt")
    _, *_, start = observe(lockstep, *before, FETCHED, Operation("crash_cache"), OPENED)
    assert start.outcome.error is None


@pytest.mark.parametrize("trace", load_regression_traces("cache"), ids=lambda trace: trace.id)
def test_regression_traces(trace, scratch):
    lockstep = CacheLockstep([JvmCache(release) for release in FEW], scratch)
    replay_operations(lockstep, trace.operations)
    assert lockstep.statistics.steps == len(trace.operations)


@pytest.mark.thorough  # fewer lookups often meet no eviction
def test_caches_in_two_threads_do_not_evict_entries_of_each_other(tmp_path):
    """The caching library shares its tasks, evictions among them, in one pool; each thread executes what it finds."""

    def begun(release):
        cache = JvmCache(release)
        (tmp_path / release).mkdir()
        cache.begin(tmp_path / release)
        return cache

    def failed_lookups(cache):
        for operation in (*STORED, Operation("open_cache", (0, -1, 0))):
            cache.perform(operation)
        looked_up = [cache.perform(Operation("look_up_offset", (ID, 100, 105))) for _ in range(10_000)]
        cache.end()
        return [seen.outcome for seen in looked_up if seen.outcome.error]

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(failed_lookups, [begun("3.9.2"), begun("4.0.2")])) == [[], []]


def test_a_difference_is_found(scratch):
    """A reference that is wrong about one name is found: the machine of the next test can fail."""
    lockstep = CacheLockstep([JvmCache("4.4.0")], scratch)
    leftover = Operation("damage_cached_file", (f"100_{ID}.index.tmp", "write_file", ("",)))
    lockstep.groups[0].reference.implementation.dialect = dialect_of("4.0.2")
    lockstep.begin()
    for operation in (OPENED, leftover, Operation("crash_cache"), OPENED):
        lockstep.perform(operation)
    with pytest.raises(DivergenceError) as found:
        lockstep.flush()
    lockstep.end()
    assert found.value.divergence.operation == OPENED
    assert found.value.divergence.aspects == ("bytes",)


@pytest.mark.parametrize("releases", [("4.0.2", "4.4.0"), thorough_param(ERAS)], ids=["two", "eras"])
def test_the_machine_is_clean(releases, scratch):
    lockstep = CacheLockstep([JvmCache(release) for release in releases], scratch)
    examples = 10 if len(releases) == 2 else 60
    with no_divergence():
        run_machine(CacheMachine, lockstep, examples, seed=4)
    assert lockstep.statistics.steps > 100
    assert sum(clause.startswith("RC-") for clause in lockstep.statistics.exercised("4.4.0")) >= 8
