"""`python -m privet` is `privet`."""

from privet.cli import main

main()
