"""Cache machine: the cache of remote index files (clauses RC), and a remote storage that sometimes fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from conformance.attribution.cache import TrackedCache
from conformance.clauses.machines import why_not_driven
from conformance.implementations.kidx.cache import ReferenceCache
from conformance.implementations.spec import parse_spec
from conformance.lockstep.file_reader import corrupted
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.scopes.caches import cache_participant
from conformance.lockstep.scopes.directory import DirectoryScope, Files
from conformance.machines.files import FilesMachine
from conformance.machines.seeded_rules import initialize, rule
from conformance.operations import OK, Operation
from conformance.operations.cache import CACHE_OPS, KINDS, CachedEntry, CacheObservation
from conformance.strategies import cache as strategies
from conformance.strategies import draws as st
from conformance.strategies.cache import SEGMENTS, TTL, Content, named
from conformance.subjects import load_subject

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress

UNLIMITED: Final = 1 << 20
"""Limit in bytes, and in 3.6 in entries, that a cache never reaches: no entry is evicted because of its size."""


class CacheScope(DirectoryScope[CacheObservation]):
    """Scope of a cache: all files of its directory, and the state of the entries."""

    machine = "cache"
    participant = staticmethod(cache_participant)
    reference = ReferenceCache
    operations = CACHE_OPS
    empty_observation = CacheObservation(OK, None)
    close_operation = Operation("close_cache")
    sections = ("index", "remote")  # of kidx.dialect.table

    def tracked(self, release: str) -> TrackedCache:
        """See the base class."""
        del release
        return TrackedCache()


class CacheLockstep(Lockstep[CacheObservation, Files]):
    """Lockstep of caches, with the arguments of the base class."""

    scope = CacheScope()


class CacheMachine(FilesMachine):
    """Machine of one cache. Every rule ends with the cache open.

    Kafka's caching library chooses which entry it evicts when there are too many (RC-12). So a limit is either never
    reached, or leaves only one choice.
    """

    kind: ClassVar[str] = "cache"
    lockstep_type = CacheLockstep
    lockstep: ClassVar[CacheLockstep]

    @classmethod
    def subject(cls, specification: str, release: str, progress: Progress | None = None) -> Any:
        """See the base class; a third-party library of Java classes may have a fork of the cache."""
        form, words = parse_spec(specification)
        if form == "subject" and load_subject(words[0]).driven == "jvm" and not why_not_driven(cls.kind, release):
            from conformance.implementations.jvm.cache import fork_of  # noqa: PLC0415 -- needs an extra

            return fork_of(words[0], release, progress)
        return super().subject(specification, release, progress)

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.ttl = -1
        self.limit = UNLIMITED
        self.holds_entry = False
        self.contents: dict[int, Content] = {}

    def do(self, name: str, *arguments: Any) -> CacheObservation:
        """Execute an operation with every participant."""
        seen: CacheObservation = self.lockstep.perform(Operation(name, arguments))
        return seen

    def all_entries(self) -> list[CachedEntry]:
        """Return the entries of all releases' caches: some releases have evicted more than others."""
        states = [group.observation.state for group in self.lockstep.groups]
        return [entry for state in states if state is not None for entry in state.entries]

    def names(self) -> list[str]:
        """Return the names of the files of all releases' caches."""
        return sorted({name for group in self.lockstep.groups for name in group.files})

    # -- storage -----------------------------------------------------------------------------------------------

    @initialize(
        ttl=st.sampled_from((-1, TTL, TTL)),
        limit=st.sampled_from((UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED, 0)),
        contents=st.lists(strategies.contents(), min_size=len(SEGMENTS), max_size=len(SEGMENTS)),
    )
    def begin(self, ttl: int, limit: int, contents: list[Content]) -> None:
        """Fill the remote storage, and open a cache in a directory that does not exist yet."""
        for number, content in enumerate(contents):
            self.supply(number, content)
        self.ttl = ttl
        self.open(limit)

    @rule(number=strategies.segments(), content=strategies.contents())
    def supply(self, number: int, content: Content) -> None:
        """Make the storage return the correct files of a segment."""
        self.contents[number] = content
        for kind in KINDS:
            self.restore(number, kind)

    def restore(self, number: int, kind: str) -> None:
        """Make the storage return the correct file."""
        segment, start = SEGMENTS[number]
        content = self.contents[number].files(start)[kind]
        missing = kind == ".txnindex" and not content
        self.do("store_index", segment, kind, "missing" if missing else "gives", content.hex())

    @rule(
        number=strategies.segments(),
        kind=strategies.kinds(),
        answer=strategies.odd_answers(),
        damage=st.tuples(*(strategies.file_damages(kind) for kind in KINDS)),
        asks=st.sampled_from(("fetch", "fetch", "look up", "time")),
        heals=st.sampled_from((True, True, True, False)),
        then=st.sampled_from(("again", "reopen", "reopen", "")),
        delta=strategies.deltas(),
    )
    def fetch_oddly(
        self,
        number: int,
        kind: str,
        answer: tuple[str, str],
        damage: tuple[Operation, ...],
        asks: str,
        heals: bool,
        then: str,
        delta: int,
    ) -> None:
        """Make the storage fail once or return a corrupt file; query once, twice, or again after a restart.

        ``answer`` is the behaviour of the storage, and the change of the content that it returns. If ``heals`` is true,
        the storage returns the correct file after the first query. ``then`` is what follows the first query, ``delta``
        the distance of the query from an entry.
        """
        segment, start = SEGMENTS[number]
        self.lift_limit()
        does, way = answer
        right = self.contents[number].files(start)[kind]
        content = right if does == "breaks" and not way else strategies.spoilt(right, kind, way)
        if way == "damaged":
            how = damage[KINDS.index(kind)]
            content = corrupted(right, how.name, how.args) or b""
        self.do("store_index", segment, kind, does, content.hex())
        self.query(number, asks, delta)
        if heals:
            self.restore(number, kind)
        if then == "again":
            self.query(number, asks, delta)
        elif then == "reopen":
            self.do("crash_cache")
            self.open(UNLIMITED)

    # -- querying ----------------------------------------------------------------------------------------------

    def lift_limit(self) -> None:
        """Lift the limit before adding an entry that would leave a choice of what to evict."""
        if self.limit not in (UNLIMITED, 0):
            self.resize("room")

    def query(self, number: int, what: str, delta: int) -> None:
        """Query a segment in one of the possible ways."""
        segment, start = SEGMENTS[number]
        content = self.contents[number]
        if what == "fetch":
            self.do("fetch_entry", segment, start, False)
        elif what == "look up":
            near = [offset for offset, _ in content.offsets] or [0]
            self.do("look_up_offset", segment, start, start + near[delta % len(near)] + delta)
        elif what == "aborted" and self.lockstep.supports("aborted_in"):
            self.do("aborted_in", segment, start, max(0, start + delta), start + 6)
        else:
            near = [timestamp for timestamp, _ in content.times] or [1000]
            timestamp = near[delta % len(near)] + delta
            self.do("look_up_timestamp", segment, start, timestamp, max(0, start + (delta if delta % 3 else 0)))

    @rule(
        number=strategies.segments(),
        what=st.sampled_from(("fetch", "look up", "look up", "time", "time", "aborted")),
        delta=strategies.deltas(),
    )
    def look(self, number: int, what: str, delta: int) -> None:
        """Query a segment, which may have to be fetched."""
        self.lift_limit()
        self.query(number, what, delta)

    @rule(number=strategies.segments(), other=st.sampled_from((False, False, True)))
    def hold(self, number: int, other: bool) -> None:
        """Keep an entry, as a working reader does; the metadata may give the segment another start offset."""
        self.lift_limit()
        segment, start = SEGMENTS[number]
        seen = self.do("fetch_entry", segment, start + 7 * other, True)
        self.holds_entry |= seen.outcome.error is None

    @rule(by_time=st.booleans(), number=strategies.segments(), delta=strategies.deltas())
    def ask_held(self, by_time: bool, number: int, delta: int) -> None:
        """Query the kept entry, which may have been removed in the meantime."""
        if self.holds_entry:
            self.do("ask_held", by_time, 1020 + delta if by_time else SEGMENTS[number][1] + delta, 0)

    # -- removing ----------------------------------------------------------------------------------------------

    @rule(
        numbers=st.lists(strategies.segments(), min_size=1, max_size=3),
        deletes=st.booleans(),
        loses=st.sampled_from((False, False, True)),
        kind=strategies.kinds(),
    )
    def remove(self, numbers: list[int], deletes: bool, loses: bool, kind: str) -> None:
        """Remove entries, perhaps of a segment one of whose files is missing."""
        if loses:
            segment, start = SEGMENTS[numbers[0]]
            self.do("damage_cached_file", f"{start}_{segment}{kind}", "remove_file", [])
        self.do("remove_entries", list(dict.fromkeys(SEGMENTS[number][0] for number in numbers)))
        if deletes:
            self.do("delete_removed")

    @rule()
    def delete_removed(self) -> None:
        """Let ten seconds pass, after which removed files are deleted."""
        self.do("delete_removed")

    @rule(to=st.sampled_from(("nothing", "all", "less", "room", "negative")))
    def resize(self, to: str) -> None:
        """Set the limit to one that leaves no choice: zero, the total size, less than each entry, or never reached."""
        if not self.lockstep.supports("resize_cache"):
            return
        sizes = [entry.size for entry in self.all_entries() if entry.size > 0]
        limit = {"nothing": 0, "all": sum(sizes), "less": max(0, min(sizes, default=1) - 1), "negative": -1}.get(
            to, UNLIMITED
        )
        if self.do("resize_cache", limit).outcome.error is None:
            self.limit = limit

    @rule(milliseconds=strategies.waits(), tidies=st.booleans(), number=strategies.segments())
    def pass_time(self, milliseconds: int, tidies: bool, number: int) -> None:
        """Let entries expire; the next query may be the first operation that notices it."""
        self.lift_limit()
        self.now += milliseconds
        self.do("pass_time", milliseconds, tidies)
        self.query(number, "fetch", 0)

    # -- starting ----------------------------------------------------------------------------------------------

    def open(self, limit: int) -> None:
        """Open the cache; if a release rejects a file, empty the directory, as an operator would, and open it again."""
        self.limit, self.holds_entry = limit, False
        self.do("open_cache", limit, self.ttl, self.now)
        if any(group.observation.outcome.error is not None for group in self.lockstep.groups):
            for name in self.names():
                self.do("damage_cached_file", name, "remove_file", [])
            self.do("open_cache", limit, self.ttl, self.now)

    @rule(
        how=st.sampled_from(("close_cache", "close_cache", "crash_cache")),
        number=strategies.segments(),
        after=st.sampled_from(("", "", "fetch", "look up", "remove", "twice", "held")),
        damages=st.lists(
            st.tuples(st.integers(0, 20), st.tuples(*(strategies.file_damages(kind) for kind in KINDS))), max_size=2
        ),
    )
    def reopen(self, how: str, number: int, after: str, damages: list[tuple[int, tuple[Operation, ...]]]) -> None:
        """Close or crash the cache, use it while it is closed, corrupt files, and open it again."""
        self.do(how)
        if how == "close_cache":
            self.use_closed(number, after)
        for place, each in damages:
            names = self.names()
            if names:
                name = names[place % len(names)]
                how_ = next((d for kind, d in zip(KINDS, each, strict=True) if kind in name), each[0])
                self.do("damage_cached_file", name, how_.name, list(how_.args))
        self.lockstep.compare_directories()
        self.open(UNLIMITED)

    def use_closed(self, number: int, how: str) -> None:
        """Use a closed cache."""
        if how in ("fetch", "look up"):
            self.query(number, how, 0)
        elif how == "remove":
            self.do("remove_entries", [SEGMENTS[number][0]])
        elif how == "twice":
            self.do("close_cache")
        elif how == "held" and self.holds_entry:
            self.do("ask_held", False, SEGMENTS[number][1], 0)
        self.do("crash_cache")

    @rule(
        pattern=strategies.foreign_names(),
        number=strategies.segments(),
        closed=st.booleans(),
        content=st.sampled_from(("", "00", "00" * 24)),
    )
    def find_foreign_file(self, pattern: str, number: int, closed: bool, content: str) -> None:
        """Put a file into the directory that the cache has not written, while it is open or closed."""
        if closed:
            self.do("close_cache")
            self.do("crash_cache")
        self.do("damage_cached_file", named(pattern, number), "write_file", [content])
        if not closed:
            self.do("crash_cache")
        self.open(UNLIMITED)

    @rule(prefix=strategies.prefixes(), number=strategies.segments(), content=strategies.contents())
    def find_foreign_segment(self, prefix: str, number: int, content: Content) -> None:
        """Put three files that belong together into the directory while the cache is closed."""
        self.do("crash_cache")
        for kind, data in content.files(SEGMENTS[number][1]).items():
            self.do("damage_cached_file", named(prefix, number) + kind, "write_file", [data.hex()])
        self.open(UNLIMITED)
        self.lift_limit()
        self.query(number, "look up", 1)
