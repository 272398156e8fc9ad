"""Stand-alone ZooKeeper for brokers before KRaft."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from conformance.kafka.broker.broker import BrokerError
from conformance.kafka.broker.config import ZOOKEEPER_SESSION_MS, zookeeper_properties
from conformance.kafka.broker.ports import HOST
from conformance.kafka.broker.process import JavaProcess
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.broker.process import JavaCommand

MAIN_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
START_LIMIT = 30.0
STOP_LIMIT = 10.0
RESPONSE_TIMEOUT_S = 2.0


class LocalZooKeeper:
    """ZooKeeper with its own directory, ``<directory>/zookeeper``, logging to ``<directory>/zookeeper.log``."""

    def __init__(self, java: JavaCommand, directory: Path, port: int) -> None:
        self.port = port
        self.log = directory / "zookeeper.log"
        self._java = java
        self._directory = directory
        self._data = directory / "zookeeper"
        self._process: JavaProcess | None = None

    @property
    def running(self) -> bool:
        """True while ZooKeeper runs."""
        return self._process is not None and self._process.running

    def start(self) -> None:
        """Start ZooKeeper, unless it runs, and wait until it answers.

        Raises:
            BrokerError: ZooKeeper ended, or did not answer in time.
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
        """Return True if this ZooKeeper answers; its data directory distinguishes it from others on the port."""
        try:
            configuration = self._request("conf")
        except OSError:
            return False
        return f"dataDir={self._data}/" in configuration

    def _request(self, command: str) -> str:
        """Send one of the four-letter commands and return the response."""
        with socket.create_connection((HOST, self.port), RESPONSE_TIMEOUT_S) as connection:
            connection.sendall(command.encode("ascii"))
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        if not answer:
            raise ConnectionError("the connection ended without a response")
        return answer.decode("utf-8", errors="replace")

    def await_session_expiry(self, path: str) -> None:
        """Wait until the session of a killed broker has expired and ZooKeeper has removed its ephemeral node.

        Raises:
            BrokerError: the node still exists although its session must have expired.
        """
        deadline = Deadline(3 * ZOOKEEPER_SESSION_MS / 1000)
        while path in self._ephemeral():
            if not deadline.pause():
                raise BrokerError(f"ZooKeeper still has {path} after {deadline.limit:g} s", self.log)

    def _ephemeral(self) -> list[str]:
        try:
            return self._request("dump").split()
        except OSError as error:
            raise BrokerError(f"ZooKeeper does not answer: {error}", self.log) from error

    def stop(self) -> None:
        """Stop ZooKeeper. Its files are complete at any time, because acknowledged changes are written immediately."""
        if self._process is None:
            return
        self._process.terminate()
        if not self._process.wait(STOP_LIMIT):
            self._process.kill()
        self._process = None
