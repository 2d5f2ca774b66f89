"""`python -m privet` is `privet`."""

import os
import sys
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]  # loads at once


def main() -> None:
    """Load the command line and run it: loading takes a moment, in which Ctrl-C may be pressed too."""
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, _stop)  # until the command line has one of its own
    from privet.cli import main as run

    run()


def _stop(*_: object) -> None:
    """End at once: an error that is raised in the middle of an import shows up anywhere, with a traceback."""
    text = "interrupted; nothing was spent"
    if "--json" in sys.argv:
        text = f'{{"error": {{"kind": "Interrupted", "exit": 130, "message": "{text}"}}}}'
    os.write(2, f"{text}\n".encode())
    os._exit(130)


if __name__ == "__main__":
    main()
