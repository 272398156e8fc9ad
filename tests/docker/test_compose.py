"""The compose file: three brokers of one cluster, which continue when one of them is killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from conformance.kafka.broker.image import build
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.client import Address, Client, ClientError
from conformance.kafka.polling import Deadline

pytestmark = pytest.mark.docker

RELEASE = "4.3.1"
FILE = Path(__file__).parents[2] / "docker" / "compose.yaml"


def compose_command() -> list[str]:
    """Return the command of Compose, which is part of the docker command, or a separate one."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"]


@pytest.fixture
def cluster():
    if not shutil.which(compose_command()[0]):
        pytest.skip("the docker tier cannot run whole: there is no compose")
    build(RELEASE)
    ports = free_ports(3)
    environment = os.environ | {"RELEASE": RELEASE} | {f"PORT_{n}": str(port) for n, port in enumerate(ports, 1)}
    project = f"kidx{uuid.uuid4().hex[:8]}"

    def compose(*arguments):
        command = [*compose_command(), "--project-name", project, "--file", FILE, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    try:
        compose("up", "--detach")
        yield ports, compose
    finally:
        compose("down", "--volumes")


def wait_until_known(port, brokers):
    deadline = Deadline(60)
    while True:
        try:
            with Client(Address(HOST, port)) as client:
                found = {node: at.port for node, at in client.metadata().brokers.items()}
        except ClientError as error:
            found = error
        if found == brokers:
            return
        assert deadline.pause(), found


def test_three_brokers_are_one_cluster_and_a_killed_one_returns(cluster):
    ports, compose = cluster
    brokers = dict(enumerate(ports, 1))
    for port in ports:
        wait_until_known(port, brokers)
    compose("kill", "broker-2")
    wait_until_known(ports[0], {1: ports[0], 3: ports[2]})
    compose("up", "--detach")
    wait_until_known(ports[0], brokers)
