"""Entry point of ``conformance``. Signal handlers are installed before the command line is imported."""

from __future__ import annotations

from kidx.signals import held_signals, signalled_exit


def main() -> None:
    """Run the command line and end the process."""
    with signalled_exit("conformance"):
        with held_signals():  # the import system would turn an exception of a signal handler into another error
            from conformance.cli import main as command_line  # noqa: PLC0415
        command_line()


if __name__ == "__main__":
    main()
