"""`python -m privet` is `privet`."""

import sys


def main() -> None:
    """Load the command line and run it: loading takes a moment, in which Ctrl-C may be pressed too."""
    try:
        from privet.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
