"""Certified sums of e^(-k^2 / (2 sigma^2)) over the integers, for any sigma.

`total` is a value of Jacobi's theta function, and `upper` the part of it from k = m on. Both are Arb balls at the
precision of the block. sigma^2 is an exact rational, since sigma may be irrational.
"""

from __future__ import annotations

import math
from functools import lru_cache

from flint import arb, ctx, fmpq

from privet.exact import Exact, ball
from privet.system.remembered import remembered

_CRAMER = fmpq(10865, 10000)
"""Cramer's constant, rounded up: |He_n(x)| <= 1.0865 sqrt(n!) e^(x^2/4)."""


def weight(sigma_squared: Exact, k: int) -> arb:
    """e^(-k^2 / (2 sigma^2))."""
    return ball(-k * k / (2 * sigma_squared)).exp()


def total(sigma_squared: Exact) -> arb:
    """The sum over all k.

    Claim: by Poisson summation it is sigma sqrt(2 pi) (1 + 2 sum over j >= 1 of e^(-2 pi^2 sigma^2 j^2)), which
    converges quickly where the sum itself does not.

    Example:
        >>> total(Exact(1))
        [2.50662828804...]
    """
    return _total(sigma_squared, ctx.prec)


@remembered(64)
def _total(sigma_squared: Exact, bits: int) -> arb:
    if 6 * sigma_squared < 1:
        return 1 + 2 * _direct(1 / ball(2 * sigma_squared), 1)
    return (2 * arb.pi() * ball(sigma_squared)).sqrt() * (1 + 2 * _direct(_dual(sigma_squared), 1))


def second_moment(sigma_squared: Exact) -> arb:
    """The sum of k^2 e^(-k^2 / (2 sigma^2)), divided by `total`: the variance of the discrete Gaussian distribution.

    Claim: sigma^2 - 4 pi^2 sigma^4 (sum of j^2 r^(j^2)) / (sum of r^(j^2)) over all integers j, with
    r = e^(-2 pi^2 sigma^2), by differentiating Poisson's formula.
    """
    if 6 * sigma_squared < 1:
        rate = 1 / ball(2 * sigma_squared)
        return 2 * _direct(rate, 1, power=2) / (1 + 2 * _direct(rate, 1))
    dual = _dual(sigma_squared)
    squared = ball(sigma_squared)
    return squared - (2 * arb.pi() * squared) ** 2 * 2 * _direct(dual, 1, power=2) / (1 + 2 * _direct(dual, 1))


def upper(sigma_squared: Exact, m: int) -> arb:
    """The sum over k >= m, for m >= 1.

    Claim: term by term if it falls fast enough, otherwise by the formula of Euler and Maclaurin, with a bound on what
    is left out.

    Example:
        >>> upper(Exact(10**6), 1) * 2 + 1, total(Exact(10**6))
        ([2506.62827463...], [2506.62827463...])
    """
    if m >= sigma_squared or ctx.prec > 16 * sigma_squared:
        return _direct(1 / ball(2 * sigma_squared), m)
    return _euler_maclaurin(sigma_squared, m)


def _dual(sigma_squared: Exact) -> arb:
    return 2 * arb.pi() ** 2 * ball(sigma_squared)


def _direct(rate: arb, m: int, power: int = 0) -> arb:
    """The sum of k^power e^(-rate k^2) over k >= m >= 1, power 0 or 2.

    Claim: the ratio of a term to the one before decreases in k, so the terms from K on are at most the K-th divided
    by 1 - (the next ratio), if that is less than 1.
    """
    room = (ctx.prec + 16) / rate  # to sqrt(m^2 + room), or a little further: m^2 may be more than arb can tell apart
    last = m + int(min(room.sqrt().upper(), (room / (2 * m)).upper()).ceil().fmpz()) + 1 + power
    term, ratio, square = (-rate * m * m).exp(), (-rate * (2 * m + 1)).exp(), (-2 * rate).exp()
    found, k = arb(0), m
    while k < last:
        found += k**power * term
        term *= ratio
        ratio *= square
        k += 1
    ratio *= (1 + 1 / arb(k)) ** power
    return found + arb(0).union(k**power * term / (1 - ratio))


def _euler_maclaurin(sigma_squared: Exact, m: int) -> arb:
    """The integral from m on of f(x) = e^(-x^2/(2 sigma^2)), plus f(m)/2, minus terms in its derivatives at m.

    Claim: the n-th derivative is (-1/sigma)^n He_n(x/sigma) f(x), with Hermite's polynomials He_n. After the term with
    the Bernoulli number B_2p the remainder is at most |B_2p|/(2p)! times the integral of |f^(2p)| from m on. That is
    |f^(2p-1)(m)| exactly if m is beyond all zeros of He_2p, which are below sqrt(8p + 2) sigma. Everywhere, by Cramer's
    inequality, it is at most 1.0865 sqrt((2p)!) sigma^(1-2p) sqrt(pi) erfc(m/(2 sigma)).

    Reference: Olver, Lozier, Boisvert, Clark, NIST Handbook (2010), 2.10(i), 18.14(i) and 18.16(v).
    """
    sigma = ball(sigma_squared).sqrt()
    first = weight(sigma_squared, m)
    found = sigma / arb(2).sqrt() * _erfc(m * m / (2 * sigma_squared)) + first / 2
    wide = sigma * _CRAMER * _erfc(m * m / (4 * sigma_squared))
    slope, step = 1 / ball(sigma_squared), ball(m / sigma_squared)
    before, hermite = arb(1), step  # He_(n-1) / sigma^(n-1) and He_n / sigma^n at m / sigma, for n = 2p - 1
    least, rest = first * arb(2) ** -ctx.prec, first
    for p in range(1, 2 * ctx.prec):
        factor = _ratio(p)
        term = factor * hermite * first
        found += term
        if m * m >= (8 * p + 2) * sigma_squared:
            rest = abs(term).upper()
        else:
            rest = (abs(factor) * wide * arb(math.factorial(2 * p)).sqrt() / ball(sigma_squared) ** p).upper()
        if rest < least:
            break
        for n in (2 * p - 1, 2 * p):
            before, hermite = hermite, step * hermite - n * slope * before
    return found + (-rest).union(rest)


def _erfc(square: Exact) -> arb:
    """sqrt(pi) erfc(sqrt(square)). Arb's erfc is accurate for small numbers, its gamma function for large ones."""
    if square < 10**6:
        return arb.pi().sqrt() * ball(square).sqrt().erfc()
    return ball(square).gamma_upper(arb(fmpq(1, 2)))


@lru_cache(maxsize=1024)
def _ratio(p: int) -> fmpq:
    """B_2p / (2p)!."""
    return fmpq.bernoulli(2 * p) / math.factorial(2 * p)
