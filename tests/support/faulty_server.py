"""Server on the loopback interface that advertises versions, and then hangs, closes or sends wrong replies."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from contextlib import contextmanager

from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest

from conformance.kafka.broker.ports import HOST
from conformance.kafka.client import Address

OFFERED = {
    ListOffsetsRequest.API_KEY: (1, 9),
    MetadataRequest.API_KEY: (1, 12),
    CreateTopicsRequest.API_KEY: (2, 7),
    FetchRequest.API_KEY: (4, 13),
}


def requests_on(connection):
    """Yield API key, version and correlation id of each request on a connection."""
    with contextlib.suppress(OSError):
        while True:
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            yield struct.unpack(">hhi", connection.recv(size, socket.MSG_WAITALL)[:8])


def frame(number, body):
    return struct.pack(">ii", 4 + len(body), number) + body


UNSUPPORTED_VERSION = 35


def api_versions(offered, version, newest):
    """Return the body of a response to ApiVersions; to a version after the newest, the error that KIP-511 specifies."""
    keys = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=v[0], max_version=v[1]) for key, v in offered.items()
    ]
    error = 0
    if version > newest:
        own = ApiVersionsResponse.ApiVersion(api_key=ApiVersionsRequest.API_KEY, min_version=0, max_version=newest)
        keys, version, error = [own], 0, UNSUPPORTED_VERSION
    return bytes(ApiVersionsResponse(version=version, error_code=error, api_keys=keys).encode())


@contextmanager
def server(reply, offered=OFFERED, newest=ApiVersionsRequest.max_version):
    """Start a server that advertises versions, and calls a function for every other request.

    Args:
        reply: Function of the connection and the request that sends a reply; None to close the connection instead.
        offered: The advertised versions; None to call the function for ApiVersions, too.
        newest: The newest version of ApiVersions that the server knows.
    """
    listening = socket.create_server((HOST, 0))
    threads = []

    def serve(connection):
        with connection, contextlib.suppress(OSError, struct.error):
            for key, version, number in requests_on(connection):
                if key == ApiVersionsRequest.API_KEY and offered is not None:
                    connection.sendall(frame(number, api_versions(offered, version, newest)))
                    continue
                answer = reply(connection, (key, version, number))
                if answer is None:
                    return
                connection.sendall(answer)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threads.append(threading.Thread(target=serve, args=(connection,), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield Address(*listening.getsockname()[:2])
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join()
        for thread in threads:
            thread.join()
