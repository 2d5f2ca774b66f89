"""`privet curve`: a chart of the Laplace or the Gaussian mechanism."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privet.cli.output import Files
from privet.errors import UserError, write
from privet.exact import Exact, Number, exact, nearest, positive
from privet.exact.search import first
from privet.mechanisms import Gaussian
from privet.plots import draw_curve
from privet.privacy.divergences import privacy_profile
from privet.privacy.guarantees import ApproxDP
from privet.release.render.picture import drawn
from privet.textbook.distributions import Laplace

FORMATS = (".png", ".svg", ".pdf")
_POINTS, _LEVELS = 401, 81
_EXAMPLES = {
    "laplace": write(terminal="privet curve --epsilon 1 --sensitivity 1 -o curve.png"),
    "gaussian": write(terminal="privet curve --mechanism gaussian --rho 0.1 -o curve.png"),
}


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


def save_curve(
    *, mechanism: str = "laplace", sensitivity: Number, output: str, force: bool = False, **price: Number | None
) -> None:
    """Draw the two densities, their ratio and the privacy profile, and save the picture.

    `price` is epsilon for the Laplace mechanism; for the Gaussian it is rho, or sigma, or epsilon and delta.
    """
    example = _EXAMPLES.get(mechanism)
    if example is None:
        raise UserError(
            f"there is no chart of {mechanism[:40]!r}",
            allowed="The mechanisms are laplace and gaussian",
            remedy=write(terminal="--mechanism gaussian"),
        )
    shift = positive(sensitivity, name="--sensitivity", example=example)
    given = {
        name: positive(number, name=f"--{name}", example=example)
        for name, number in price.items()
        if number is not None
    }
    if not Fraction(1, 10**100) <= shift <= 10**100:
        raise UserError(
            "epsilon or sensitivity is out of range for a chart",
            allowed="Epsilon must be from 1e-9 to 1000, and the sensitivity from 1e-100 to 1e100",
            remedy=example,
        )
    path = picture_path(output)
    curve = _laplace(shift, given) if mechanism == "laplace" else _gaussian(shift, given)
    files = Files.checked(path, force=force)
    try:
        files.write(path, drawn(draw_curve(**curve), path.suffix))
    except OSError as error:
        raise UserError(f"{output!r} can't be written: {error.strerror or error}", remedy=example) from None


def _laplace(shift: Exact, price: dict[str, Exact]) -> dict[str, Any]:
    """The continuous noise, which the discrete noise of real numbers approaches."""
    example = _EXAMPLES["laplace"]
    if list(price) != ["epsilon"]:
        raise UserError("the Laplace mechanism needs epsilon, and nothing else", remedy=example)
    loss = price["epsilon"]
    if not Fraction(1, 10**9) <= loss <= 1000:
        raise UserError(
            "epsilon or sensitivity is out of range for a chart",
            allowed="Epsilon must be from 1e-9 to 1000, and the sensitivity from 1e-100 to 1e100",
            remedy=example,
        )
    scale = shift / loss
    one, other = Laplace(0, scale), Laplace(shift, scale)
    points = sorted({*_spread(4 * scale, shift), exact(0), shift})
    levels, profile = _levels(loss), privacy_profile(one, other)
    return {
        "x": np.array([nearest(x) for x in points]),
        "p": np.array([float(one.pdf(x)) for x in points]),
        "q": np.array([float(other.pdf(x)) for x in points]),
        "log_ratio": np.array([nearest(one.sliding(shift, x)) for x in points]),
        "levels": np.array([nearest(level) for level in levels]),
        "deltas": np.array([float(profile(level)) for level in levels]),
        "epsilon": nearest(loss),
        "noise": f"scale {nearest(scale):g}",
        "title": f"The Laplace mechanism, sensitivity {nearest(shift):g}, $\\epsilon$ = {nearest(loss):g}",
    }


def _gaussian(shift: Exact, price: dict[str, Exact]) -> dict[str, Any]:
    """The noise of one real number, which is discrete with very small steps, and its exact profile."""
    example = _EXAMPLES["gaussian"]
    if set(price) not in ({"rho"}, {"sigma"}, {"epsilon", "delta"}):
        raise UserError("the Gaussian mechanism needs rho, or sigma, or epsilon and delta", remedy=example)
    if price.get("epsilon", Exact(1)) > 1000 or not Exact(1, 10**280) <= price.get("delta", Exact(1, 2)) < 1:
        raise _out_of_range()
    mechanism = Gaussian(sensitivity=shift, dimension=1, **price)
    noise, step = mechanism.noise, mechanism.step
    rho = shift**2 / (2 * mechanism.sigma_squared)
    if not Fraction(1, 10**9) <= rho <= 1000:
        raise _out_of_range()
    profile = mechanism.privacy_profile()
    if isinstance(mechanism.price, ApproxDP):
        loss, delta = mechanism.price.epsilon, mechanism.price.delta
        text = f"$\\epsilon$ = {nearest(loss):g}, $\\delta$ = {nearest(delta):g}"
    else:  # mark the epsilon, rounded up, at which delta is 10^-6; or less, if delta is never that large
        delta = min(Exact(1, 10**6), profile(0).upper / 1000)
        unit = Exact(10) ** -12
        low = first(lambda k: profile(unit * 2**k).upper <= delta, 0)
        part = unit * 2**low / 2**20
        loss = part * first(lambda k: profile(part * k).upper <= delta, 1, 2**20)
        text = f"$\\rho$ = {nearest(rho):.4g}"
    sides = max(4 * Exact(mechanism.sigma), Exact(4, 3) * loss * mechanism.sigma_squared / shift - shift / 2)
    places = [round(x / step) for x in _spread(sides, shift)]  # so that the ratio leaves its band
    levels = _levels(loss)
    return {
        "x": np.array([nearest(k * step) for k in places]),
        "p": np.array([nearest(noise.pmf(k).upper / step) for k in places]),
        "q": np.array([nearest(noise.pmf(k - mechanism.steps).upper / step) for k in places]),
        "log_ratio": np.array([nearest((shift / 2 - k * step) * shift / mechanism.sigma_squared) for k in places]),
        "levels": np.array([nearest(level) for level in levels]),
        "deltas": np.array([float(profile(level)) for level in levels]),
        "epsilon": nearest(loss),
        "delta": nearest(delta),
        "noise": f"sigma {mechanism.sigma:.4g}",
        "title": f"The Gaussian mechanism, sensitivity {nearest(shift):g}, {text}",
    }


def _out_of_range() -> UserError:
    return UserError(
        "the price is out of range for a chart",
        allowed="rho must be from 1e-9 to 1000, epsilon at most 1000, and delta from 1e-280 to 1",
        remedy=_EXAMPLES["gaussian"],
    )


def _spread(reach: Exact, shift: Exact) -> list[Exact]:
    """Points from -reach to shift + reach."""
    return [-reach + Fraction(i, _POINTS - 1) * (2 * reach + shift) for i in range(_POINTS)]


def _levels(loss: Exact) -> list[Exact]:
    """Levels of epsilon from 0 to a quarter beyond the loss."""
    return [loss * Fraction(i, _LEVELS - 1) * Fraction(5, 4) for i in range(_LEVELS)]
