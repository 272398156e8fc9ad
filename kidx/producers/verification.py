"""Transactions that their coordinator has yet to confirm (``VerificationStateEntry``; KIP-890, from 3.6)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Verification:
    """What is known of a producer whose transaction is being verified. The object itself is the guard given out for it.

    Attributes:
        began: milliseconds.
        lowest_sequence: the smallest sequence number that was asked for in this epoch.
        epoch: the newest one.
        raises_epochs: the producer raises its epoch with each transaction (their second version; from 4.0).
    """

    began: int
    lowest_sequence: int
    epoch: int
    raises_epochs: bool

    def ask(self, sequence: int, epoch: int) -> None:
        """Notes a sequence number that it is asked for with."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
