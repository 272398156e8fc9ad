"""A stand-alone ZooKeeper for brokers before KRaft."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.ports import HOST
from conformance.kafka.broker.process import JavaProcess
from conformance.kafka.broker.settings import ZOOKEEPER_SESSION_MS, zookeeper_properties
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.broker.java_command import JavaCommand

MAIN_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
START_LIMIT = 30.0
STOP_LIMIT = 10.0
ANSWER_LIMIT = 2.0


class LocalZooKeeper:
    """One ZooKeeper in a directory of its own, ``<directory>/zookeeper``, logging to ``<directory>/zookeeper.log``."""

    def __init__(self, java: JavaCommand, directory: Path, port: int) -> None:
        self.port = port
        self.log = directory / "zookeeper.log"
        self._java = java
        self._directory = directory
        self._data = directory / "zookeeper"
        self._process: JavaProcess | None = None

    @property
    def running(self) -> bool:
        """Tell whether it runs."""
        return self._process is not None and self._process.running

    def start(self) -> None:
        """Start it, unless it runs, and wait until it answers.

        Raises:
            BrokerError: it died, or did not answer in time.
        """
        if self.running:
            return
        self._data.mkdir(parents=True, exist_ok=True)
        configuration = self._directory / "zookeeper.properties"
        configuration.write_text(zookeeper_properties(self._data, self.port), "utf-8")
        deadline = Deadline(START_LIMIT)
        process = JavaProcess(self._java(MAIN_CLASS, configuration), log=self.log, directory=self._directory)
        self._process = process
        while not self._answers():
            since = process.log_start
            if not process.running:
                raise BrokerError(f"ZooKeeper ended with status {process.exit_status}", self.log, since=since)
            if not deadline.pause():
                self.stop()
                raise BrokerError(f"ZooKeeper was not ready within {deadline.limit:g} s", self.log, since=since)

    def _answers(self) -> bool:
        """Tell whether this very ZooKeeper answers: the data directory is ours, not that of another on our port."""
        try:
            configuration = self._ask("conf")
        except OSError:
            return False
        return f"dataDir={self._data}/" in configuration

    def _ask(self, command: str) -> str:
        """Ask one of the four-letter commands."""
        with socket.create_connection((HOST, self.port), ANSWER_LIMIT) as connection:
            connection.sendall(command.encode("ascii"))
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        if not answer:
            raise ConnectionError("no answer")
        return answer.decode("utf-8", errors="replace")

    def await_forgotten(self, path: str) -> None:
        """Wait until an ephemeral node is gone, which a killed broker left behind.

        Raises:
            BrokerError: it is still there although its session must have ended.
        """
        deadline = Deadline(3 * ZOOKEEPER_SESSION_MS / 1000)
        while path in self._ephemeral():
            if not deadline.pause():
                raise BrokerError(f"ZooKeeper still has {path} after {deadline.limit:g} s", self.log)

    def _ephemeral(self) -> list[str]:
        try:
            return self._ask("dump").split()
        except OSError as error:
            raise BrokerError(f"ZooKeeper does not answer: {error}", self.log) from error

    def stop(self) -> None:
        """Stop it; it has no shutdown of its own to wait for, and what it acknowledged is written."""
        if self._process is None:
            return
        self._process.terminate()
        if not self._process.wait(STOP_LIMIT):
            self._process.kill()
        self._process = None
