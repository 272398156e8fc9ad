"""Machine of a broker that is driven only by Kafka's protocol: the broker machine's rules, without files.

A lockstep has one connection and serves many topics::

    with WireBroker(Address("127.0.0.1", 9092)) as broker, scratch_directory() as scratch:
        lockstep = WireLockstep(broker, "4.3.1", scratch)
        run_state_machine_as_test(WireMachine.bind(lockstep))
        lockstep.differences
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.machines.broker import BrokerMachine
from conformance.strategies import broker as strategies
from conformance.strategies import wire


class WireMachine(BrokerMachine):
    """Machine of one topic; after each rule the lockstep sends every query."""

    kind = "wire"
    send_records = None  # type: ignore[assignment]  # a client library's batches depend on the time of sending
    append_without_keys = None  # type: ignore[assignment]  # topics are not compacted

    @initialize(data=st.data(), shapes=st.lists(strategies.shapes(3), min_size=4, max_size=8))
    def create(self, data: st.DataObject, shapes: list[strategies.Shape]) -> None:
        """Create a topic with a few batches, so that even the simplest example has records to look up."""
        settings = data.draw(wire.settings(self.lockstep.release), "settings") | self.lockstep.broker.topic_config
        self.large = int(settings["segment.bytes"] >= strategies.ROLLS_BY_SIZE)
        self.lockstep.watches = False  # no queries yet
        self.do("create_topic", settings)
        self.append_all(shapes)

    def append_all(self, shapes: list[strategies.Shape]) -> None:
        """Append batches outside of transactions; the lockstep sends its queries only after the last batch."""
        for number, shape in enumerate(shapes, start=1):
            self.lockstep.watches = number == len(shapes)
            self.do("append_batch", self.records(shape), shape.codec, None)

    @precondition(lambda self: self.lockstep.topic.account.undecided)
    @rule(delta=st.sampled_from((1, 0, 2)), everything=st.booleans())
    def delete_into_transaction(self, delta: int, everything: bool) -> None:
        """Delete some records of an open transaction, or all records."""
        account = self.lockstep.topic.account
        first = min(account.undecided.values()) + delta  # the first offsets of the open transactions
        self.do("delete_before", -1 if everything else min(first, account.end))

    def teardown(self) -> None:
        """End the example's transactions."""
        if self.lockstep.topics:
            self.lockstep.finish()
