"""Entry point of ``conformance``. Signal handlers are set before the command line is loaded, which takes a moment."""

from kidx.interrupts import end_at_once, raise_again


def main() -> None:
    """Run the command line and end the process."""
    end_at_once("conformance")
    from kidx.signals import held_signals, signalled_exit  # noqa: PLC0415 -- after an interrupt has a handler

    raise_again()
    with signalled_exit("conformance"):
        with held_signals():  # the import system would convert the exception of a signal to another error
            from conformance.cli import main as command_line  # noqa: PLC0415
        command_line()


if __name__ == "__main__":
    main()
