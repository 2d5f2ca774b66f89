"""Options that are written as in Python, `epsilon=0.5`: refused with the flag to write."""

from __future__ import annotations

import shlex
from typing import Any

from typer.core import TyperCommand

_SHORT = {"eps": "epsilon"}


class Asking(TyperCommand):
    """A command that takes one statement; whatever stands beside it may be an option without its dashes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is left after all parameters were found: nothing."""
        from privet.errors import UserError

        if any(each.partition("=")[0] == "--eps" for each in args):
            raise UserError("there is no --eps. Write: --epsilon 0.5")
        _, extra, _ = self.make_parser(ctx).parse_args(args=list(args))
        flags = {flag for parameter in self.params for flag in parameter.opts}
        for each in extra:
            name, sign, value = each.partition("=")
            flag = f"--{_SHORT.get(name.lower(), name.lower()).replace('_', '-')}"
            if sign and value and flag in flags:
                raise UserError(f"options begin with two dashes. Write: {flag} {shlex.quote(value)}")
        return super().parse_args(ctx, args)
