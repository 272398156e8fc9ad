"""Topic settings that a broker uses: of KRaft's metadata, ``server.properties``, or Kafka's defaults, in this order."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kidx.errors import ToolError
from kidx.files import read_text
from kidx.java_values import java_properties
from kidx.log import LogConfig
from kidx.printable import shell_word, shortened

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.cluster import ClusterMetadata

_MINUTE: Final = 60_000
_HOUR: Final = 60 * _MINUTE
_NUMBERS: Final[dict[str, dict[str, int]]] = {
    "retention.ms": {"log.retention.ms": 1, "log.retention.minutes": _MINUTE, "log.retention.hours": _HOUR},
    "retention.bytes": {"log.retention.bytes": 1},
    "segment.bytes": {"log.segment.bytes": 1},
    "segment.ms": {"log.roll.ms": 1, "log.roll.hours": _HOUR},
    "segment.index.bytes": {"log.index.size.max.bytes": 1},
    "delete.retention.ms": {"log.cleaner.delete.retention.ms": 1},
    "min.compaction.lag.ms": {"log.cleaner.min.compaction.lag.ms": 1},
    "max.message.bytes": {"message.max.bytes": 1},
}
"""Broker settings by topic setting, each with its unit in units of the topic setting; the first that is set counts."""
_TEXTS: Final[dict[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "message.timestamp.type": "log.message.timestamp.type",
}
_INTERNAL: Final[dict[str, dict[str, str]]] = {
    "__consumer_offsets": {"cleanup.policy": "compact"},
    "__transaction_state": {"cleanup.policy": "compact"},
    "__share_group_state": {"cleanup.policy": "delete", "retention.ms": "-1"},
    "__remote_log_metadata": {"cleanup.policy": "delete", "retention.ms": "-1"},
}
"""Settings with which brokers create their own topics, for metadata that are elsewhere."""
OF_TOPIC: Final = "topic."
"""Beginning of a property that gives a setting of a topic, such as ``topic.orders.retention.ms``."""
_NUMBER: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_REMOTE: Final = "remote.storage.enable"


class _Setting(NamedTuple):
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Settings of a topic.

    Attributes:
        config: the settings.
        sources: source of each setting that is not Kafka's default, by its name.
        is_tiered: True if the topic has remote storage, so that retention is about both tiers.
    """

    config: LogConfig
    sources: Mapping[str, str] = field(default_factory=dict)
    is_tiered: bool = False

    def source_of(self, name: str) -> str:
        """Return the source of a setting, as text."""
        return self.sources.get(name, "Kafka's default")


class Settings:
    """Settings of a broker's topics.

    Args:
        cluster: KRaft's metadata; empty if they are elsewhere.
        node: id of the broker; None if unknown.
        properties: the broker's ``server.properties``; None if it is unknown.
    """

    def __init__(
        self, cluster: ClusterMetadata, node: int | None = None, properties: Mapping[str, str] | None = None
    ) -> None:
        self._cluster = cluster
        self._broker = {
            name: _Setting(value, source)
            for source, settings in (
                ("server.properties", properties or {}),
                ("the cluster's setting", cluster.of_brokers.get("", {})),
                ("the broker's setting", cluster.of_brokers.get(str(node), {})),
            )
            for name, value in settings.items()
        }

    def of(self, topic: str, index_interval_bytes: int) -> TopicSettings:
        """Return the settings of a topic; a value that is not valid counts as not set.

        Args:
            index_interval_bytes: setting that is known otherwise.
        """
        found = dict(self._of_broker())
        own, source = self._cluster.settings.get(topic, {}), "the topic's setting"
        own = own | self._of_topics(topic)
        if not own and topic not in self._cluster.topics:
            own, source = _INTERNAL.get(topic, {}), f"with which brokers create {topic}"
        found |= {name: _Setting(value, source) for name, value in own.items()}
        found.pop("segment.jitter.ms", None)
        values: dict[str, Any] = {}
        for name, setting in found.items():
            with contextlib.suppress(ValueError):
                LogConfig.of_topic({name: setting.value})
                values[name] = setting.value
        config = replace(LogConfig.of_topic(values), index_interval_bytes=index_interval_bytes)
        is_tiered = str(own.get(_REMOTE)).lower() == "true"
        if is_tiered:  # retention deletes what is in remote storage, too
            config = replace(config, retention_ms=-1, retention_bytes=-1)
        return TopicSettings(config, {name: found[name].source for name in values}, is_tiered)

    def _of_topics(self, topic: str) -> dict[str, str]:
        """Return the settings of a topic that ``server.properties`` has in lines which are only for kidx."""
        begin = f"{OF_TOPIC}{topic}."
        return {name.removeprefix(begin): each.value for name, each in self._broker.items() if name.startswith(begin)}

    def _of_broker(self) -> Iterable[tuple[str, _Setting]]:
        """Yield the defaults of the broker's topics by their names as settings of a topic."""
        for name, units in _NUMBERS.items():
            for of_broker, unit in units.items():
                setting = self._broker.get(of_broker)
                with contextlib.suppress(ValueError):
                    if setting is not None:
                        number = int(setting.value)
                        yield name, setting._replace(value=str(number * unit if number > 0 else number))
                        break
        for name, of_broker in _TEXTS.items():
            if of_broker in self._broker:
                yield name, self._broker[of_broker]


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of a ``server.properties``.

    Raises:
        ToolError: the file cannot be read, or one of the settings that matter is not a number.
    """
    try:
        found = {name: value.strip() for name, value in java_properties(read_text(path)).items()}
    except (OSError, ValueError) as error:
        raise ToolError(f"cannot read {shell_word(path)}: {getattr(error, 'strerror', None) or error}") from error
    for units in _NUMBERS.values():
        for name in units:
            if _NUMBER.fullmatch(found.get(name, "0")) is None:
                raise ToolError(f"cannot read {shell_word(path)}: {name} is not a number: {shortened(found[name])}")
    return found
