"""`privet curve`: a chart of the Laplace mechanism."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from privet.cli.output import Files
from privet.errors import UserError, write
from privet.exact import Number, exact, nearest, positive
from privet.plots import draw_curve
from privet.privacy.divergences import privacy_profile
from privet.release.render.picture import drawn
from privet.textbook.distributions import Laplace

FORMATS = (".png", ".svg", ".pdf")


def picture_path(output: str) -> Path:
    """The path of an image file."""
    path = Path(output)
    if path.suffix.lower() not in FORMATS:
        raise UserError(
            f"{output!r} is not an image file",
            allowed="The file types are .png, .svg and .pdf",
            remedy=write(terminal="-o curve.png"),
        )
    return path


def save_curve(*, epsilon: Number, sensitivity: Number, output: str, force: bool = False) -> None:
    """Draw the two densities, their ratio and the privacy profile, and save the picture."""
    example = write(terminal="privet curve --epsilon 1 --sensitivity 1 -o curve.png")
    loss = positive(epsilon, name="--epsilon", example=example)
    shift = positive(sensitivity, name="--sensitivity", example=example)
    if not (Fraction(1, 10**100) <= shift <= 10**100 and Fraction(1, 10**9) <= loss <= 1000):
        raise UserError(
            "epsilon or sensitivity is out of range for a chart",
            allowed="Epsilon must be from 1e-9 to 1000, and the sensitivity from 1e-100 to 1e100",
            remedy=example,
        )
    path = picture_path(output)
    files = Files.checked(path, force=force)
    scale = shift / loss
    one, other = Laplace(0, scale), Laplace(shift, scale)
    reach = 4 * scale
    points = sorted({-reach + Fraction(i, 400) * (2 * reach + shift) for i in range(401)} | {exact(0), shift})
    levels = [loss * Fraction(i, 80) * Fraction(5, 4) for i in range(81)]
    profile = privacy_profile(one, other)
    figure = draw_curve(
        x=np.array([nearest(x) for x in points]),
        p=np.array([float(one.pdf(x)) for x in points]),
        q=np.array([float(other.pdf(x)) for x in points]),
        log_ratio=np.array([nearest(one.sliding(shift, x)) for x in points]),
        epsilon=nearest(loss),
        shift=nearest(shift),
        scale=nearest(scale),
        levels=np.array([nearest(level) for level in levels]),
        deltas=np.array([float(profile(level)) for level in levels]),
    )
    try:
        files.write(path, drawn(figure, path.suffix))
    except OSError as error:
        raise UserError(f"{output!r} can't be written: {error.strerror or error}", remedy=example) from None
