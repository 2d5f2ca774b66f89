"""`python -m privet` is `privet`."""

import os
import signal


def main() -> None:
    """Load the command line and run it: loading takes a moment, in which Ctrl-C may be pressed too."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    from privet.cli import main as run

    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
    run()


def _stop(*_: object) -> None:
    """End at once: an error that is raised in the middle of an import shows up anywhere, with a traceback."""
    os.write(2, b"interrupted; nothing was spent\n")
    os._exit(130)


if __name__ == "__main__":
    main()
