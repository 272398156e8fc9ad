"""Builds and patch releases of Kafka."""

from __future__ import annotations

import json
import tarfile
import zipfile

import pytest
from kafka_builds import build_at, patched

from conformance.clauses.machines import DEFAULT_MACHINES
from conformance.errors import NotDrivenError, ToolError
from conformance.implementations.forms import directory_of, form_of
from conformance.kafka.builds import open_build, release_of
from conformance.machines import MACHINES
from conformance.runs.replay import load_regression_traces
from kidx.dialect import dialect_of

# -- ``-i jvm:DIR``: any build of Kafka, from a directory of its jars ----------------------------------------------


pytestmark = pytest.mark.jvm


def without(*starts):
    return lambda name: None if name.startswith(starts) else name


class TestWhatABuildIs:
    @pytest.mark.parametrize("release", ["3.4.1", "3.9.1", "4.4.0"])
    def test_the_version_is_read_from_the_jars(self, tmp_path, release):
        build = open_build(str(build_at(tmp_path, release)))
        assert (build.version, build.release) == (release, release)

    @pytest.mark.thorough
    def test_a_version_that_is_no_release_has_the_dialect_before_it(self, tmp_path):
        at = build_at(tmp_path, "4.3.1", named=lambda name: name.replace("4.3.1", "4.5.0-SNAPSHOT"))
        patched(at, "kafka-clients", {"kafka/kafka-version.properties": b"commitId=1\nversion=4.5.0-SNAPSHOT\n"})
        build = open_build(str(at))
        assert (build.version, build.release) == ("4.5.0-SNAPSHOT", "4.4.0")

    def test_without_properties_the_version_is_read_from_the_names(self, tmp_path):
        at = patched(build_at(tmp_path, "4.3.1"), "kafka-clients", {"kafka/kafka-version.properties": None})
        assert open_build(str(at)).version == "4.3.1"

    @pytest.mark.parametrize(
        ("version", "release"),
        [("3.9.2-rc1", "3.9.2"), ("4.2.0", "4.2.0"), ("4.2.9", "4.2.2"), ("9.0.0", "4.4.0"), ("3.10.0", "3.9.2")],
    )
    def test_the_release_of_a_version(self, version, release):
        assert release_of(version) == release

    @pytest.mark.thorough
    def test_a_distribution_and_its_archive(self, tmp_path):
        libs = build_at(tmp_path / "kafka_2.13-4.3.1" / "libs", "4.3.1", "index")
        archive = tmp_path / "kafka_2.13-4.3.1.tgz"
        names = [jar.name for jar in open_build(str(libs.parent)).jars]
        with tarfile.open(archive, "w:gz", compresslevel=1, dereference=True) as tar:
            tar.add(libs, "kafka_2.13-4.3.1/libs")
            tar.add(libs / names[0], "../../escaped.jar")
        assert [jar.name for jar in open_build(str(archive)).jars] == names
        assert len(names) == len(list(libs.iterdir()))
        assert not list(tmp_path.rglob("escaped.jar"))

    def test_a_checkout(self, tmp_path):
        for jar in list(build_at(tmp_path / "all", "4.3.1").iterdir()):
            ours = jar.name.startswith("kafka")
            module = jar.name.removeprefix("kafka-").rpartition("-")[0] if ours else "core"
            place = tmp_path / "checkout" / module / "build" / ("libs" if ours else "dependant-libs-2.13.17")
            place.mkdir(parents=True, exist_ok=True)
            jar.rename(place / jar.name)
        (tmp_path / "checkout/storage/build/libs/kafka-storage-4.3.1-test.jar").write_bytes(b"not looked at")
        build = open_build(str(tmp_path / "checkout"))
        assert build.version == "4.3.1"
        assert not [jar for jar in build.jars if "test" in jar.name]
        assert MACHINES["log"].subject(f"jvm:{tmp_path / 'checkout'}", "4.3.1").class_name.endswith("UnifiedLog")

    @pytest.mark.thorough
    def test_a_fat_jar(self, tmp_path, conformance):
        entries = {}
        for jar in build_at(tmp_path / "thin", "4.3.1", "segment").iterdir():
            with zipfile.ZipFile(jar) as source:
                entries |= {name: source.read(name) for name in source.namelist() if not name.endswith("/")}
        fat = tmp_path / "fat" / "kafka-all.jar"
        fat.parent.mkdir()
        with zipfile.ZipFile(fat, "w", zipfile.ZIP_STORED) as target:
            for name, data in entries.items():
                target.writestr(name, data)
        done = conformance("run", "-i", f"jvm:{fat.parent}", "--machine", "segment", "--max-examples", 5, "-j", 1)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "4.3.1" in done.stdout


class TestHeldToItsRelease:
    @pytest.mark.in_turn(2)
    @pytest.mark.thorough
    @pytest.mark.parametrize("release", ["3.4.1", "3.9.2"])
    def test_it_conforms_on_all_machines(self, tmp_path, release, conformance, thorough):
        at = build_at(tmp_path / "build", release)
        few = "50" if thorough else "5"
        done = conformance("run", "-i", f"jvm:{at}", "--max-examples", few, "-j", 1, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        document = json.loads(done.stdout)
        assert {(row["machine"], row["release"]) for row in document["results"]} == {
            (name, release) for name in DEFAULT_MACHINES
        }
        assert all(row["steps"] for row in document["results"])

    @pytest.mark.thorough
    def test_another_release_is_distinguished(self, tmp_path, conformance):
        at = build_at(tmp_path / "build", "3.9.1")
        command = ("run", "-i", f"jvm:{at}", "--kafka", "3.9.2", "--machine", "offset", "--max-examples", 60, "-j", 1)
        done = conformance(*command)
        assert done.returncode == 1, done.stdout + done.stderr
        assert f"-i jvm:{at}" in done.stdout
        assert "--kafka 3.9.2" in done.stdout

    @pytest.mark.thorough
    def test_a_release_without_a_lock_will_do(self, tmp_path, conformance):
        at = build_at(tmp_path / "build", "4.2.1")
        command = ("--machine", "offset", "--max-examples", 5, "-j", 1)
        assert conformance("run", "-i", f"jvm:{at}", "--kafka", "4.2.0", *command).returncode == 0
        done = conformance("run", "-i", "jvm", "--kafka", "4.2.9", *command)  # which is not published
        assert done.returncode == 2, done.stdout

    def test_builds_of_two_releases_require_a_choice(self, tmp_path, conformance):
        builds = [build_at(tmp_path / release, release) for release in ("3.9.1", "3.9.2")]
        done = conformance("run", *(word for at in builds for word in ("-i", f"jvm:{at}")))
        assert done.returncode == 2
        assert "3.9.1 is 3.9.1" in done.stderr.replace(f"{tmp_path}/", "")
        assert "--kafka" in done.stderr


class TestWhatIsMissing:
    def class_without(self, tmp_path, release, jar, name, change):
        """Make a build in which a class is replaced by another with a name of equal length in the constant pool."""
        at = build_at(tmp_path / "build", release)
        with zipfile.ZipFile(next(at.glob(f"{jar}-{release}.jar"))) as source:
            data = source.read(name)
        old, new = change
        assert old in data
        return patched(at, f"{jar}-{release}", {name: data.replace(old, new)})

    @pytest.mark.thorough
    def test_a_member_is_named_with_the_last_release_that_has_it(self, tmp_path, conformance):
        name = "org/apache/kafka/storage/internals/log/TimeIndex.class"
        at = self.class_without(tmp_path, "4.4.0", "kafka-storage", name, (b"maybeAppend", b"maybeAttach"))
        with pytest.raises(NotDrivenError, match=r"TimeIndex has no method maybeAppend with 3.*that has it is 4\.4\.0"):
            MACHINES["time"].subject(f"jvm:{at}", "4.4.0")
        command = ("run", "-i", f"jvm:{at}", "--max-examples", 5, "-j", 1)
        done = conformance(*command, "--machine", "offset", "--machine", "time")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "maybeAppend" in done.stdout
        alone = conformance(*command, "--machine", "time")
        assert alone.returncode == 2
        assert alone.stderr.count("\n") == 1

    def test_a_class_is_named_with_the_last_release_that_has_it(self, tmp_path):
        gone = {"org/apache/kafka/storage/internals/log/TransactionIndex.class": None}
        at = patched(build_at(tmp_path, "4.3.1"), "kafka-storage-4", gone)
        with pytest.raises(NotDrivenError, match=r"no class \S*TransactionIndex.*4\.4\.0"):
            MACHINES["transaction"].subject(f"jvm:{at}", "4.3.1")
        MACHINES["offset"].subject(f"jvm:{at}", "4.3.1")


class TestBadInput:
    def refused(self, path):
        with pytest.raises(ToolError) as refused:
            MACHINES["segment"].subject(f"jvm:{path}", "4.3.1")
        assert "\n" not in str(refused.value)
        return str(refused.value)

    def test_no_directory(self, tmp_path):
        assert "no build at" in self.refused(tmp_path / "nowhere")

    def test_no_jars(self, tmp_path):
        assert "has no jars" in self.refused(tmp_path)

    def test_no_zip(self, tmp_path):
        (tmp_path / "kafka-clients-4.3.1.jar").write_bytes(b"PK?")
        assert "cannot read kafka-clients-4.3.1.jar" in self.refused(tmp_path)

    def test_no_archive(self, tmp_path):
        (tmp_path / "kafka.tgz").write_bytes(b"nothing of the kind")
        assert "cannot unpack the build" in self.refused(tmp_path / "kafka.tgz")

    def test_jars_of_something_else(self, tmp_path):
        at = build_at(tmp_path, "4.3.1", named=lambda name: name if name.startswith("slf4j") else None)
        assert "is not Kafka" in self.refused(at)

    def test_two_versions(self, tmp_path):
        at = build_at(tmp_path, "3.9.2")
        build_at(tmp_path, "3.9.1", named=lambda name: name if name.startswith("kafka-storage-3") else None)
        assert "two versions of Kafka" in self.refused(at)

    @pytest.mark.parametrize(
        ("jar", "said"), [("kafka-clients", "kafka-clients"), ("slf4j-api", "org.slf4j"), ("metrics-core", "yammer")]
    )
    def test_a_missing_dependency(self, tmp_path, jar, said):
        said_in_full = self.refused(build_at(tmp_path, "4.3.1", named=without(jar)))
        assert "is not complete" in said_in_full
        assert said in said_in_full

    def test_classes_of_a_newer_java(self, tmp_path):
        name = "org/apache/kafka/storage/internals/log/OffsetIndex.class"
        at = build_at(tmp_path, "4.3.1")
        with zipfile.ZipFile(at / "kafka-storage-4.3.1.jar") as source:
            data = source.read(name)
        patched(at, "kafka-storage-4", {name: data[:6] + (120).to_bytes(2, "big") + data[8:]})
        assert "compiled for Java 76" in self.refused(at)

    @pytest.mark.parametrize("text", ["jvm:", "broker:", "jvmx", "exec:"])
    def test_forms(self, text):
        form = form_of(text)
        assert form is None or text == "exec:"

    def test_directories(self):
        assert [directory_of(text) for text in ("jvm", "jvm:a:b", "broker:x", "exec:x")] == [None, "a:b", "x", None]


# -- Patch releases that are not locked: changes of a later patch, checked with their own classes ------------------


CHANGED = {
    "log-780697667db6": ("2.6.0", "2.6.3", "idle_truncation_truncates_epochs"),
    "log-87e1d9a38167": ("2.6.0", "2.6.3", "idle_truncation_truncates_epochs"),
    "log-e69efbd3ac5a": ("2.7.0", "2.7.2", "loading_sets_watermark_metadata"),
    "cleaned-a3ba4adcb5d1": ("2.8.0", "2.8.2", "collects_aborted_to_segment_end"),
    "cleaned-6a4468d8d47c": ("3.2.0", "3.2.3", "maps_markers_by_key"),
    "segment-1bcc0c84ca40": ("3.0.0", "3.0.2", "truncated_records_are_null"),
}
"""The trace that showed it, a release before the change, one that has it, and the behaviour that changed."""


@pytest.mark.parametrize("name", CHANGED)
def test_the_patch_made_a_difference(name):
    """The row of the behaviour has different values on both sides of the patch."""
    before, since, behaviour = CHANGED[name]
    assert getattr(dialect_of(before), behaviour) != getattr(dialect_of(since), behaviour)


@pytest.mark.thorough
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", CHANGED)
def test_the_release_before_it_conforms(name, in_process, tmp_path):
    """Kafka's own classes of the release before the patch do what its row says."""
    machine, _, trace = name.partition("-")
    assert trace in {kept.id for kept in load_regression_traces(machine)}
    done = in_process(
        "conformance",
        "replay",
        name,
        "--kafka",
        CHANGED[name][0],
        work=tmp_path,
        environment={"KIDX_CONFIG": str(tmp_path / "configuration"), "XDG_STATE_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout.splitlines()[-1].partition(" ")[0]) == (0, "FIXED"), done.stderr
