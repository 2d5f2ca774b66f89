"""Exact noise, compared with inexact noise (numpy) and exact noise (OpenDP): medians of alternating rounds."""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
from fractions import Fraction

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.peer import Peer
from bench.timing import cpu_seconds, seconds
from privet import Laplace
from privet.noise import DiscreteGaussian, DiscreteLaplace
from privet.noise.gaussian import gaussian_sampler
from privet.noise.laplace import laplace_digits

SCALES = ("1", "10", "1e4", "1e6", "1e12")
SIGMAS = ("1", "10", "100", "1000", "1e4", "1e6", "1e9")
COUNT = 10**6
PEER_COUNT = 20_000
ROUNDS = 9
OPENDP = "opendp==0.16.0"

_MEMORY = """
from privet.noise import DiscreteLaplace
def peak():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) / 1024
noise = DiscreteLaplace("{scale}")
noise.sample(10**5)
before = peak()
draws = noise.sample(10**7)
print(peak() - before - draws.nbytes / 2**20)
"""


def main() -> None:
    console = Console(width=110, highlight=False)
    console.print(
        f"Python {platform.python_version()}, numpy {np.__version__}, {OPENDP}, {ROUNDS} rounds, medians, CPU time\n"
    )
    with Peer(OPENDP, "opendp_noise.py") as opendp:
        _arrays(console, opendp)
        _single(console, opendp)
        gaussian(console, opendp)
    _process(console)


def gaussian(console: Console, opendp: Peer) -> None:
    """Gaussian noise: arrays, a single release, 4,096 draws at once, and the first draw at a new sigma."""
    titles = ("sigma", "Privet", "numpy + rint", "OpenDP int", "OpenDP float", "x numpy", "x OpenDP int")
    arrays = Table(
        *titles,
        title=f"\nGaussian noise: million draws a second, arrays of {COUNT:,} (OpenDP: {PEER_COUNT:,})",
        box=None,
    )
    few = Table("sigma", "one, us", "OpenDP one, us", "4,096, us", "new sigma, ms", title="\nFew draws", box=None)
    generator = np.random.default_rng()
    for sigma in SIGMAS:
        width = Fraction(sigma)
        noise, square = DiscreteGaussian(width**2), width**2
        noise.sample(COUNT)
        ours, numpys, single, small, fresh = [], [], [], [], []
        peers: dict[str, list[float]] = {"integers": [], "reals": [], "single": []}
        for _ in range(ROUNDS):
            ours.append(COUNT / cpu_seconds(lambda n=noise: n.sample(COUNT)))  # type: ignore[misc]
            numpys.append(COUNT / cpu_seconds(lambda w=float(width): np.rint(generator.normal(0, w, COUNT))))  # type: ignore[misc]
            single.append(cpu_seconds(lambda n=noise: [n.sample() for _ in range(500)]) / 500)  # type: ignore[misc]
            small.append(cpu_seconds(lambda n=noise: n.sample(4096)))  # type: ignore[misc]
            gaussian_sampler.cache_clear()
            fresh.append(cpu_seconds(lambda s=square: gaussian_sampler(s)))  # type: ignore[misc]
            for kind, times in peers.items():
                count = 500 if kind == "single" else PEER_COUNT
                taken = opendp.ask(mechanism="gaussian", scale=float(width), count=count, kind=kind)
                times.append(taken / count if kind == "single" else count / taken / 1e6)
        rate, other = statistics.median(ours) / 1e6, statistics.median(numpys) / 1e6
        integers, reals, one = (statistics.median(each) for each in peers.values())
        arrays.add_row(
            sigma,
            *(f"{rate:.0f}", f"{other:.0f}", f"{integers:.3f}", f"{reals:.3f}"),
            *(f"{rate / other:.2f}", f"{rate / integers:,.0f}"),
        )
        few.add_row(
            sigma,
            *(f"{each * 1e6:.1f}" for each in (statistics.median(single), one, statistics.median(small))),
            f"{statistics.median(fresh) * 1e3:.1f}",
        )
    console.print(arrays)
    console.print(few)


def _arrays(console: Console, opendp: Peer) -> None:
    titles = (
        "scale",
        "Privet",
        "numpy + rint",
        "OpenDP int",
        "OpenDP float",
        "x numpy",
        "x OpenDP int",
        "x OpenDP float",
    )
    table = Table(*titles, title=f"Million draws a second, arrays of {COUNT:,} (OpenDP: {PEER_COUNT:,})", box=None)
    generator = np.random.default_rng()
    for scale in SCALES:
        noise, width = DiscreteLaplace(scale), float(scale)
        noise.sample(COUNT)
        rates: dict[str, list[float]] = {name: [] for name in ("privet", "numpy", "integers", "reals")}
        for _ in range(ROUNDS):
            rates["privet"].append(COUNT / cpu_seconds(lambda n=noise: n.sample(COUNT)))  # type: ignore[misc]
            rates["numpy"].append(COUNT / cpu_seconds(lambda w=width: np.rint(generator.laplace(0, w, COUNT))))  # type: ignore[misc]
            for kind in ("integers", "reals"):
                rates[kind].append(
                    PEER_COUNT / opendp.ask(mechanism="laplace", scale=width, count=PEER_COUNT, kind=kind)
                )
        ours, numpys, integers, reals = (statistics.median(each) / 1e6 for each in rates.values())
        table.add_row(
            scale,
            *(f"{ours:.0f}", f"{numpys:.0f}", f"{integers:.3f}", f"{reals:.3f}"),
            *(f"{ours / numpys:.2f}", f"{ours / integers:,.0f}", f"{ours / reals:,.0f}"),
        )
    console.print(table)


def _single(console: Console, opendp: Peer) -> None:
    table = Table("scale", "integer", "real", "new scale", "OpenDP", title="\nOne release, microseconds", box=None)
    for scale in SCALES:
        integer = Laplace(sensitivity=1, scale=scale)
        fresh, known, reals, peers = [], [], [], []
        for _ in range(ROUNDS):
            laplace_digits.cache_clear()
            fresh.append(cpu_seconds(lambda m=integer: m.release(1234)))  # type: ignore[misc]
            integer.release(1.5)
            known.append(cpu_seconds(lambda m=integer: [m.release(1234) for _ in range(500)]) / 500)  # type: ignore[misc]
            reals.append(cpu_seconds(lambda m=integer: [m.release(1.5) for _ in range(500)]) / 500)  # type: ignore[misc]
            peers.append(opendp.ask(mechanism="laplace", scale=float(scale), count=500, kind="single") / 500)
        table.add_row(scale, *(f"{statistics.median(each) * 1e6:.1f}" for each in (known, reals, fresh, peers)))
    console.print(table)


def _process(console: Console) -> None:
    table = Table("what", "measured", title="\nThe whole process", box=None)
    for scale in ("1", "1e12"):
        found = subprocess.run(
            [sys.executable, "-c", _MEMORY.format(scale=scale)], capture_output=True, text=True, check=True
        )
        table.add_row(
            f"memory beyond the output, 10^7 draws at scale {scale}", f"{max(0.0, float(found.stdout)):.1f} MB"
        )
    for what, line in (
        ("import privet", "import privet"),
        ("import privet, first use of Laplace", "import privet; privet.Laplace"),
        ("import numpy, beside it", "import numpy"),
    ):
        bare, loaded = [], []
        for _ in range(ROUNDS):
            bare.append(seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)))
            loaded.append(seconds(lambda code=line: subprocess.run([sys.executable, "-c", code], check=True)))  # type: ignore[misc]
        table.add_row(what, f"{statistics.median(loaded) - statistics.median(bare):.3f} s")
    console.print(table)
