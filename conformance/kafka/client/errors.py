"""Errors of requests to a broker, with one class for each kind of failure.

A message begins with the broker's address; :attr:`ClientError.what` is the rest of the message.
"""

from __future__ import annotations

from conformance.errors import ToolError


class ClientError(ToolError):
    """Failure of a request to a broker.

    Attributes:
        broker: name of the broker in the message.
        what: predicate of the message, whose subject is the broker.
    """

    def __init__(self, broker: str, what: str) -> None:
        super().__init__(f"{broker} {what}")
        self.broker = broker
        self.what = what


class UnreachableError(ClientError):
    """Failure to connect: a closed port, a host name without an address, or no route."""


class RequestTimedOutError(ClientError):
    """Connected broker that did not answer, or did not accept a request, within the time limit."""


class ClosedError(ClientError):
    """Connection closed by the broker before the response was complete."""


class UndecodableError(ClientError):
    """Response that does not match the request: too large, for another request, truncated, or of another format."""


class UnsupportedApiError(ClientError):
    """API that the broker does not offer at all, or not in a requested version."""


class ErrorResponseError(ClientError):
    """Error returned by the broker.

    Attributes:
        error: name in Kafka's protocol, such as ``TOPIC_ALREADY_EXISTS``.
    """

    def __init__(self, broker: str, what: str, error: str) -> None:
        super().__init__(broker, f"fails to {what}: {error}")
        self.error = error
