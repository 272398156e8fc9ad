"""Kafka's classes of many releases, which follow the references step by step, some steps behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.script import Script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.implementations.jvm.script import Language


class JvmFollowers:
    """Members of one kind (see :class:`conformance.implementations.protocol.Followers`).

    Args:
        language: of their drivers.
        rules: how many sets of rules there are.
        members: implementations, each with its ``driver`` and the number of the set of rules that it must follow.
    """

    def __init__(self, language: Language, rules: int, members: Sequence[tuple[Any, int]]) -> None:
        self._language = language
        self._rules = rules
        self._followers = driver_class("Followers")(rules)
        for member, mine in members:
            self._followers.add(member.driver, mine)
        self.begin = self._followers.begin
        self.finish = self._followers.finish
        self.stopped_at = self._followers.stoppedAt
        self.resume = self._followers.resume
        self.performing = self._followers.performing

    def script(self) -> Script:
        """See the protocol."""
        return Script(self._rules, self._language)

    def start(self, script: Script, *, alone: bool) -> None:
        """See the protocol."""
        self._followers.start(bytes(script), script.steps, alone)
