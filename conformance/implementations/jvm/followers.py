"""Kafka's classes of many releases, which follow the references step by step, some steps behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.script import Script
from conformance.implementations.jvm.virtual_machine import most_open_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.implementations.jvm.script import Language

_SHARE: Final = 0.4
"""Of the files that this process may have open, those that are compared: what releases work on are others."""


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
        self._followers = driver_class("Followers")(rules, int(most_open_files() * _SHARE))
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
