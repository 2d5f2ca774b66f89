"""What a guarantee means for one person: the posterior of an attacker, the power of a test, and both in words."""

from __future__ import annotations

from privet.errors import NumberError, UserError, write
from privet.exact import Exact, Number, exact, exp, show, show_up, whole

HUGE = 4096  # from this epsilon on, e^-epsilon is rounded down to 0, which is the safe direction


def delta_for_population(n: int) -> Exact:
    """1/n^2 for a declared population of n people (public knowledge, never the number of rows in the data).

    Example:
        >>> delta_for_population(1000)
        Fraction(1, 1000000)
    """
    return Exact(1, whole(n, name="n", example="delta_for_population(1_000_000)") ** 2)


def posterior(epsilon: Exact, prior: Number) -> Exact:
    """P e^epsilon / (1 - p + p e^epsilon) for the prior p; rounded up."""
    p = _share(prior, "prior", "posterior(0.5)")
    return p / (p + (1 - p) * _exp_minus_down(epsilon)) if p else p


def true_positive_rate(epsilon: Exact, delta: Exact, false_positive_rate: Number) -> Exact:
    """min(1, e^epsilon f + delta, 1 - e^-epsilon (1 - delta - f)); rounded up."""
    f = _share(false_positive_rate, "false_positive_rate", "true_positive_rate(0.05)")
    low = _exp_minus_down(epsilon)
    many = f / low + delta if low else Exact(1)
    return min(Exact(1), many if f else delta, 1 - low * max(1 - delta - f, Exact(0)))


def in_words(epsilon: Exact, delta: Exact, adjacency: str) -> str:
    """A few sentences, under "add/remove" or "replace"."""
    if adjacency not in ("add/remove", "replace"):
        raise UserError(
            f"adjacency must be 'add/remove' or 'replace', not {adjacency!r}", remedy=write("meaning('add/remove')")
        )
    if delta >= 1:
        return "A delta of 1 promises nothing."
    sure = posterior(epsilon, Exact(1, 2))
    now = "all but certain" if sure > 1 - Exact(1, 10**6) else f"at most {_percent(sure, 50)} % sure"
    if adjacency == "add/remove":
        text = f"someone 50 % sure that a person is in the data can become {now}"
        test = "At a 5 % false-positive rate, a test can detect the person"
    else:
        text = f"someone who considers two versions of a person's data equally likely can become {now} of one"
        test = "At a 5 % false-positive rate, a test for one of them can detect it"
    rate = true_positive_rate(epsilon, delta, Exact(1, 20))
    hits = "nearly 100" if rate > 1 - Exact(1, 10**6) else f"at most {_percent(rate, 5)}"
    first = "Even knowing all others' data, "
    if delta:
        first = (
            f"It is no worse than a mechanism that reveals everything with probability {show_up(delta)}, "
            "and otherwise guarantees the following: even knowing all others' data, "
        )
    return f"{first}{text}. {test} {hits} % of the time. Percentages are rounded."


def _percent(share: Exact, before: int) -> str:
    """The nearest percentage, with the fewest digits that neither hide a change nor claim certainty."""
    for digits in range(13):
        scaled = round(share * 100 * 10**digits)
        if before * 10**digits < scaled < 100 * 10**digits:
            break
    else:
        return str(before)
    units, part = divmod(scaled, 10**digits)
    return f"{units}.{part:0{digits}d}" if digits else str(units)


def _share(value: object, name: str, line: str) -> Exact:
    number = exact(value, name=name, example=line)
    if not 0 <= number <= 1:
        raise NumberError(f"{name} must be between 0 and 1, not {show(number)}", remedy=write(line))
    return number


def _exp_minus_down(epsilon: Exact) -> Exact:
    return exp(-epsilon).lower if epsilon <= HUGE else Exact(0)
