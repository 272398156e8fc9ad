"""The machine of a broker that only its protocol is known of: the broker machine's rules, without files.

Bind it to a lockstep, which is one connection and outlives many topics::

    with WireBroker(Address("127.0.0.1", 9092)) as broker, scratch_directory() as scratch:
        lockstep = WireLockstep(broker, "4.3.1", scratch)
        run_state_machine_as_test(WireMachine.on(lockstep))
        lockstep.differences
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.machines.broker import BrokerMachine
from conformance.strategies import broker as strategies
from conformance.strategies import wire

if TYPE_CHECKING:
    from conformance.lockstep.scopes.wire import WireLockstep


class WireMachine(BrokerMachine):
    """Rules over one topic; after every one, every question is asked (by the lockstep)."""

    lockstep: ClassVar[Any]
    send_records = None  # type: ignore[assignment]  # what a client library batches depends on time
    append_without_keys = None  # type: ignore[assignment]  # topics are not compacted

    @classmethod
    def on(cls, lockstep: WireLockstep, *, restarts: int = 0) -> type[WireMachine]:
        """The machine on a connection; ``restarts`` is how many stops all examples together may make."""
        return type(cls.__name__, (cls,), {"lockstep": lockstep, "restarts": restarts})

    @initialize(data=st.data(), shapes=st.lists(strategies.shapes(3), min_size=4, max_size=8))
    def create(self, data: st.DataObject, shapes: list[strategies.Shape]) -> None:
        """A fresh topic with a few batches, so that the simplest example has something to look up."""
        settings = data.draw(wire.settings(self.lockstep.release), "settings")
        self.large = int(settings["segment.bytes"] >= strategies.ROLLS_BY_SIZE)
        self.lockstep.watches = False
        self.do("create_topic", settings)
        self.append_all(shapes)

    def append_all(self, shapes: list[strategies.Shape]) -> None:
        """Appends batches outside of transactions; questions follow the last one."""
        for number, shape in enumerate(shapes, start=1):
            self.lockstep.watches = number == len(shapes)
            self.do("append_batch", self.records(shape), shape.codec, None)

    @precondition(lambda self: self.lockstep.topic.account.undecided)
    @rule(delta=st.sampled_from((1, 0, 2)), everything=st.booleans())
    def delete_into_transaction(self, delta: int, everything: bool) -> None:
        """Deletes records of a transaction that is open: some of them, or everything."""
        account = self.lockstep.topic.account
        first = min(account.undecided.values()) + delta
        self.do("delete_before", -1 if everything else min(first, account.end))

    def teardown(self) -> None:
        """Leaves no transaction open."""
        if self.lockstep.topics:
            self.lockstep.close_topic()
