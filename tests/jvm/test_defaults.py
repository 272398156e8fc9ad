"""Defaults of topic settings compared with the defaults of Kafka's own ``LogConfig``."""

from __future__ import annotations

import pytest
from thorough_params import thorough_except

from conformance.kafka.releases import RELEASES
from kidx.dialect import dialect_of
from kidx.log import LogConfig
from kidx.log.config import _INTEGERS

pytestmark = pytest.mark.jvm

NOT_TOPIC = {"producer.id.expiration.ms"}
"""Settings of the broker that a log has as well."""


def defaults_of(release: str) -> dict[str, str]:
    """Return Kafka's values for a topic without settings, as text."""
    from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm

    jpype = start_jvm()
    loader = release_loader(release, "log")
    name = "kafka.log." if release < "3.5" else "org.apache.kafka.storage.internals.log."
    log_config = jpype.JClass(f"{name}LogConfig", loader=loader)
    nothing = jpype.JClass("java.util.HashMap")()
    if release < "3.5":
        none_overridden = jpype.JClass("scala.collection.immutable.Set$EmptySet$", loader=loader)
        made = log_config(nothing, getattr(none_overridden, "MODULE$"))
    else:
        made = log_config(nothing)
    return {str(entry.getKey()): str(entry.getValue()) for entry in made.values().entrySet()}


@pytest.mark.parametrize("release", thorough_except(("2.4.1", "4.4.0"), RELEASES))
def test_defaults_are_those_of_the_release(release):
    theirs, ours, dialect = defaults_of(release), LogConfig(), dialect_of(release)
    of_release = {
        "max.message.bytes": ours.largest_message(dialect),
        "message.timestamp.before.max.ms": ours.timestamp_limits(dialect)[0],
        "message.timestamp.after.max.ms": ours.timestamp_limits(dialect)[1],
    }
    compared = {name: of_release.get(name, getattr(ours, field)) for name, field in _INTEGERS.items() if name in theirs}
    assert {name: str(value) for name, value in compared.items()} == {name: theirs[name] for name in compared}
    assert len(compared) >= len(_INTEGERS) - len(NOT_TOPIC) - 3  # limits that this release has not
    policy, stamps = theirs["cleanup.policy"], theirs["message.timestamp.type"]
    assert ("compact" in policy, "delete" in policy) == (ours.compacts, ours.deletes)
    assert (stamps == "LogAppendTime", theirs["preallocate"] == "true") == (ours.log_append_time, ours.preallocate)
    assert (theirs["compression.type"] == "producer") == (ours.compression is None)
