"""``conformance kafka lock RELEASE``: a release that the package does not know, locked by its user."""

from __future__ import annotations

import json
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from conformance.commands import options
from conformance.commands.options import resolve_releases
from conformance.kafka import builds, lock_file, releases
from conformance.kafka.releases import RELEASES, load_release, user_locks
from kidx.dialect import DIALECTS, NEWEST, dialect_of, register_release, version_of

LEFT_OUT = "4.0.1"
"""Release that is removed and restored; the dialect of 4.0.0, before it, differs."""


@pytest.fixture
def lock_of_it(tmp_path, in_process):
    """Run the command line with a configuration directory of the test."""

    def run(*words, **environment):
        own = {"KIDX_CONFIG": str(tmp_path / "configuration"), "XDG_STATE_HOME": str(tmp_path)}
        return in_process("conformance", *words, work=tmp_path, environment=own | environment)

    return run


@pytest.fixture(autouse=True)
def known_again():
    """Restore the known releases after the test."""
    known = dict(DIALECTS)
    yield
    DIALECTS.clear()
    DIALECTS.update(known)
    forget()


def forget():
    load_release.cache_clear()


@pytest.fixture
def without_it(monkeypatch):
    """Remove the lock and the dialect of a release from the package."""
    rest = tuple(release for release in RELEASES if release != LEFT_OUT)
    for module in (lock_file, releases, builds):
        monkeypatch.setattr(module, "RELEASES", rest)
    del DIALECTS[LEFT_OUT]
    forget()


@pytest.fixture
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setenv("KIDX_CONFIG", str(tmp_path))
    forget()
    directory = user_locks()
    directory.mkdir()
    return directory


class _Damaged(BaseHTTPRequestHandler):
    """A Maven repository that has everything, without dependencies; every jar differs from its published SHA-1."""

    def do_GET(self):
        *_, artifact, version, name = self.path.split("/")
        if name.endswith(".pom"):
            text = f"<artifactId>{artifact}</artifactId><version>{version}</version>"
            group = ".".join(self.path.strip("/").split("/")[:-3])
            body = f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId>{text}</project>"
        else:
            body = "0" * 40
        known = name.endswith((".pom", ".jar", ".jar.sha1"))
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(body.encode() if known else b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def damaged_mirror():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Damaged) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.jvm
@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_published_release_is_locked_on_its_first_use(tmp_path, lock_of_it):
    words = ("run", "--kafka", "4.2.0", "--machine", "transaction", "--max-examples", "5")
    first = lock_of_it(*words)
    assert first.returncode == 0, first.stderr
    assert "locking Kafka 4.2.0 in" in first.stderr
    assert (tmp_path / "configuration" / "locks" / "4.2.0.toml").is_file()
    again = lock_of_it(*words)
    assert again.returncode == 0, again.stderr
    assert "locking" not in again.stderr


@pytest.mark.jvm
@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("without_it")
def test_a_removed_release_is_restored(tmp_path, lock_of_it):
    unknown = lock_of_it("run", "--kafka", LEFT_OUT)
    assert unknown.returncode == 2
    assert f"conformance kafka lock {LEFT_OUT}" in unknown.stderr
    done = lock_of_it("kafka", "lock", LEFT_OUT)
    assert done.returncode == 0, done.stdout + done.stderr
    path = tmp_path / "configuration" / "locks" / f"{LEFT_OUT}.toml"
    assert str(path) in done.stdout
    assert f"conformance diff 4.0.0 {LEFT_OUT}" in done.stdout
    ours = tomllib.loads((lock_file.LOCKS / f"{LEFT_OUT}.toml").read_text("utf-8"))
    assert tomllib.loads(path.read_text("utf-8")) == ours, "coordinates, digests, sizes and groups"
    held = lock_of_it("run", "--kafka", LEFT_OUT, "--machine", "offset", "--max-examples", 20, "-j", 1)
    assert held.returncode == 1, "it has the dialect of 4.0.0, and differs"
    assert LEFT_OUT in held.stdout


class TestWhatCannotBeLocked:
    def told(self, done):
        assert done.returncode == 2, done.stdout
        (line,) = done.stderr.splitlines()
        return line

    @pytest.mark.thorough
    @pytest.mark.parametrize("text", ["4.1", "latest", "", "../4.1.1", "4.1.1\n", "4.1.1\x1b[2J", "4.1.1-rc0", "٤.1.1"])
    def test_an_invalid_version(self, text, lock_of_it):
        assert "is not a release of Kafka; write it as 4.2.0" in self.told(lock_of_it("kafka", "lock", text))

    def test_a_version_of_the_package(self, lock_of_it):
        assert "Kafka 4.3.1 is already locked by this package" in self.told(lock_of_it("kafka", "lock", "4.3.1"))

    def test_a_version_that_is_too_old(self, lock_of_it):
        assert "older than 2.4.0" in self.told(lock_of_it("kafka", "lock", "1.1.1"))

    @pytest.mark.jvm
    def test_an_unpublished_version(self, tmp_path, lock_of_it):
        line = self.told(lock_of_it("kafka", "lock", "4.1.99"))
        assert "cannot lock Kafka 4.1.99" in line
        assert "not found" in line
        assert not (tmp_path / "configuration").exists()

    @pytest.mark.jvm
    def test_no_repository_answers(self, tmp_path, lock_of_it):
        done = lock_of_it("kafka", "lock", "4.1.1", KIDX_MAVEN_MIRROR="http://127.0.0.1:9")
        assert "cannot lock Kafka 4.1.1" in self.told(done)
        assert not (tmp_path / "configuration").exists()

    @pytest.mark.jvm
    def test_a_jar_that_differs_from_the_published_one(self, tmp_path, lock_of_it, damaged_mirror):
        line = self.told(lock_of_it("kafka", "lock", "4.1.1", KIDX_MAVEN_MIRROR=damaged_mirror))
        assert "cannot lock Kafka 4.1.1: Checksum mismatch" in line
        assert not (tmp_path / "configuration").exists()


class TestTheUsersLocks:
    def test_a_release_has_the_dialect_before_it(self, own_locks):
        text = (lock_file.LOCKS / "4.4.0.toml").read_text("utf-8")
        (own_locks / "4.9.0.toml").write_text(text.replace('release = "4.4.0"', 'release = "4.9.0"'), "utf-8")
        assert load_release("4.9.0").jars == load_release("4.4.0").jars
        assert dialect_of("4.9.0").rules() == DIALECTS[NEWEST].rules()

    def test_user_locks_are_listed_as_such_and_do_not_change_the_package(self, own_locks, lock_of_it, tmp_path):
        text = (lock_file.LOCKS / "4.4.0.toml").read_text("utf-8")
        (own_locks / "4.10.0.toml").write_text(text.replace('release = "4.4.0"', 'release = "4.10.0"'), "utf-8")
        (own_locks / "notes.toml").write_text("", "utf-8")
        (own_locks / "4.3.1.toml").write_text("", "utf-8")  # the package's own counts
        told = lock_of_it("kafka", "list", KIDX_CONFIG=str(tmp_path))
        assert told.returncode == 0, told.stderr
        (line,) = (line for line in told.stdout.splitlines() if "(yours)" in line)
        assert line.startswith("4.10.0 (yours)")
        assert line == told.stdout.splitlines()[-1]
        rows = json.loads(lock_of_it("kafka", "list", "--json", KIDX_CONFIG=str(tmp_path)).stdout)
        assert [row["release"] for row in rows] == [*RELEASES, "4.10.0"]
        assert [row["release"] for row in rows if row["users"]] == ["4.10.0"]
        assert resolve_releases(["all"]) == RELEASES

    def test_every_is_each_published_release(self, own_locks, monkeypatch):
        text = (lock_file.LOCKS / "4.3.1.toml").read_text("utf-8")
        (own_locks / "4.3.0.toml").write_text(text.replace('release = "4.3.1"', 'release = "4.3.0"'), "utf-8")
        monkeypatch.setattr(options, "PUBLISHED", "4.3.0 4.3.1")
        assert resolve_releases(["every"]) == tuple(sorted((*RELEASES, "4.3.0"), key=version_of))

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('release = "4.4.0"', 'release = "4.4.1"'),
            ("org.apache.kafka:kafka-clients:4.4.0", "../../x:kafka-clients:4.4.0"),
            ("org.apache.kafka:kafka-clients:4.4.0", "org.apache.kafka:..:4.4.0"),
            ('sha256 = "', 'sha256 = "z'),
            ("size = ", "size = -"),
            ("jars = [", "jars = [["),
            ('logging = "', 'logging = "x'),
            ("groups = [", 'groups = ["x", '),
        ],
    )
    def test_an_invalid_lock_is_rejected(self, own_locks, old, new, lock_of_it, tmp_path):
        text = (lock_file.LOCKS / "4.4.0.toml").read_text("utf-8").replace('release = "4.4.0"', 'release = "4.9.0"')
        old = old.replace('release = "4.4.0"', 'release = "4.9.0"')
        assert old in text
        (own_locks / "4.9.0.toml").write_text(text.replace(old, new), "utf-8")
        done = lock_of_it("run", "--kafka", "4.9.0", KIDX_CONFIG=str(tmp_path))
        assert done.returncode == 2
        assert "is not a valid lock file of Kafka 4.9.0" in done.stderr
        assert "4.9.0" not in DIALECTS


def test_a_release_is_not_adopted_twice():
    assert register_release("4.3.1") is DIALECTS["4.3.1"]
    with pytest.raises(ValueError, match="older than all"):
        register_release("0.1.0")
