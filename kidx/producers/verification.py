"""Verification that a transaction is open at its coordinator (``VerificationStateEntry``; KIP-890, from 3.6)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class VerificationStateEntry:
    """State of a producer whose transaction is being verified. The object itself is the verification guard.

    Attributes:
        began: start of the verification in milliseconds.
        lowest_sequence: smallest sequence number that was verified in this epoch.
        epoch: the newest epoch.
        raises_epochs: True if the producer raises its epoch with each transaction (transaction version 2; from 4.0).
    """

    began: int
    lowest_sequence: int
    epoch: int
    raises_epochs: bool

    def update(self, sequence: int, epoch: int) -> None:
        """Record a sequence number for which verification was requested."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
