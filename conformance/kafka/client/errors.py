"""The ways in which a request to a broker can fail, one class for each.

A message has the address in front, so that it can stand alone; :attr:`ClientError.what` is the rest of it.
"""

from __future__ import annotations

from conformance.errors import ToolError


class ClientError(ToolError):
    """A broker did not do what it was asked.

    Attributes:
        broker: how the message calls the broker.
        what: what went wrong, as a sentence whose subject is the broker.
    """

    def __init__(self, broker: str, what: str) -> None:
        super().__init__(f"{broker} {what}")
        self.broker = broker
        self.what = what


class UnreachableError(ClientError):
    """No connection: it was refused, the name has no address, or the network has no way there."""


class NoAnswerError(ClientError):
    """The broker is connected but did not answer, or did not accept a request, within the time limit."""


class ClosedError(ClientError):
    """The broker closed the connection before its answer was complete."""


class UndecodableError(ClientError):
    """The answer does not fit the request: too large, of another request, cut short, or of another format."""


class NotOfferedError(ClientError):
    """The broker does not offer the API, or none of the versions that were asked for."""


class RefusedError(ClientError):
    """The broker answered with an error.

    Attributes:
        error: its name in Kafka's protocol, such as ``TOPIC_ALREADY_EXISTS``.
    """

    def __init__(self, broker: str, what: str, error: str) -> None:
        super().__init__(broker, f"refuses to {what}: {error}")
        self.error = error
