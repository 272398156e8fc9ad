"""Free ports on the loopback address."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from conformance.errors import ToolError

HOST = "127.0.0.1"
_LOWEST = 15_000
_TRIES = 200
_random = random.SystemRandom()  # unseeded: two harnesses with the same seed must not pick the same ports


def free_ports(count: int) -> list[int]:
    """Return different ports that no process listens on now.

    The ports are below the range that the system uses for outgoing connections, so that no process gets a broker's port
    by chance while the broker is down. Another harness may still take a port first; then the caller retries.

    Raises:
        ToolError: too few ports are free.
    """
    highest = _ephemeral_start() - 1
    found: list[int] = []
    for _ in range(_TRIES * count):
        port = _random.randint(_LOWEST, max(highest, _LOWEST + 1000))
        if port not in found and is_free(port):
            found.append(port)
            if len(found) == count:
                return found
    raise ToolError(f"no {count} free ports between {_LOWEST} and {highest} on {HOST}")


def is_free(port: int) -> bool:
    """Return True if a server could listen on a port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As in Java, a port whose last connections are still in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768
