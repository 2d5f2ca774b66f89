"""Random bits: never the same twice (T8), never without the operating system (T9), and exactly AES in counter mode."""

from __future__ import annotations

import importlib
import inspect
import multiprocessing
import os
import pkgutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

import privet
from privet.errors import EntropyError
from privet.mechanisms import Laplace
from privet.noise import Bernoulli, BernoulliExp, DiscreteLaplace, Geometric, UniformInteger, entropy
from privet.noise.entropy import REKEY_AFTER, SYSTEM, Bits, SystemBits

BLOCK = 16
Source = Callable[[], Bits]


def in_child(work: Callable[[], bytes]) -> bytes:
    """What `work` gives in a forked process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(work())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return data


def blocks(*streams: bytes) -> list[bytes]:
    return [data[i : i + BLOCK] for data in streams for i in range(0, len(data), BLOCK)]


def all_distinct(*streams: bytes) -> bool:
    found = blocks(*streams)
    return bool(found) and len(set(found)) == len(found) and all(len(stream) >= BLOCK for stream in streams)


# --- T8: forks --------------------------------------------------------------------------------


def fork_repeats_nothing(source: Source) -> bool:
    """Parent, child, grandchild and a second child never share a block, whoever draws first."""
    bits = source()
    before = bits.take(64)  # the stream exists before the fork

    def child() -> bytes:
        nested = in_child(lambda: bits.take(64))
        return bits.take(64) + nested

    first, second = in_child(child), in_child(child)
    return len(first) == len(second) == 128 and all_distinct(before, first, second, bits.take(64))


class _KeptOverFork(SystemBits):
    """One stream, whatever process asks."""

    def _stream(self, count: int) -> Any:
        if not hasattr(self, "kept"):
            self.kept = entropy._Stream()
        return self.kept


def test_a_fork_repeats_no_block() -> None:
    assert fork_repeats_nothing(SystemBits)
    assert fork_repeats_nothing(lambda: SYSTEM)


def test_a_stream_kept_over_a_fork_is_caught() -> None:
    assert not fork_repeats_nothing(_KeptOverFork)


def test_samples_differ_between_forks() -> None:
    noise = DiscreteLaplace("1e30")
    noise.sample()
    drawn = [in_child(lambda: str([noise.sample(), noise.sample(1).tolist()]).encode()) for _ in range(3)]
    assert len({*drawn, str([noise.sample(), noise.sample(1).tolist()]).encode()}) == 4


def _worker(size: int) -> bytes:
    return SYSTEM.take(size)


def test_forked_pools_repeat_no_block() -> None:
    before = SYSTEM.take(64)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        drawn = pool.map(_worker, [4096] * 16, chunksize=1)
    assert all_distinct(before, *drawn, SYSTEM.take(64))


class _HookOnly(SystemBits):
    """Relies on Python's fork hook alone: a fork that Python does not see keeps the stream."""

    def _stream(self, count: int) -> Any:
        stream = getattr(self._local, "stream", None)
        if stream is None or stream.left < count:
            stream = self._local.stream = entropy._Stream()
        stream.left -= count
        return stream


def hidden_fork_changes_the_key(source: Source, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A fork behind Python's back, as C code does: the process number changes and no hook runs."""
    bits, drawn, true_pid = source(), [], os.getpid()
    bits.take(16)
    with monkeypatch.context() as patch:
        keys = count_keys(patch)
        for pid in (true_pid, true_pid + 1, true_pid + 1, true_pid + 2):
            patch.setattr(os, "getpid", lambda pid=pid: pid)
            drawn.append(bits.take(16))
    return len(keys) == 2 and all_distinct(*drawn)


def count_keys(patch: pytest.MonkeyPatch) -> list[bytes]:
    """The seeds that the operating system gives from now on."""
    seeds: list[bytes] = []
    real = os.urandom

    def urandom(size: int) -> bytes:
        seeds.append(real(size))
        return seeds[-1]

    patch.setattr(os, "urandom", urandom)
    return seeds


def test_a_fork_that_python_does_not_see_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hidden_fork_changes_the_key(SystemBits, monkeypatch)
    assert not hidden_fork_changes_the_key(_HookOnly, monkeypatch)


def test_the_fork_hook_forgets_streams_of_every_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other half: the hook alone would do, even if process numbers were reused."""
    bits = SystemBits()
    bits.take(16)
    monkeypatch.setattr(os, "getpid", lambda: 7)
    bits.take(16)
    seeds = count_keys(monkeypatch)
    bits.take(16)
    assert seeds == []
    entropy._forget_all()
    bits.take(16)
    assert len(seeds) == 1


# --- T8: threads ------------------------------------------------------------------------------


class _Torn(SystemBits):
    """One stream for all threads, kept as a key and a counter that are read and written with no lock."""

    def __init__(self) -> None:
        super().__init__()
        self.key, self.counter = os.urandom(32), 0

    def take(self, count: int) -> bytes:
        at = self.counter
        stream = Cipher(algorithms.AES(self.key), modes.CTR(at.to_bytes(16, "big"))).encryptor().update(bytes(count))
        time.sleep(0)  # what another thread may do at any moment, made likely
        self.counter = at + -(-count // BLOCK)
        return stream


def threads_repeat_nothing(source: Source, threads: int = 8, rounds: int = 200) -> bool:
    bits, barrier = source(), threading.Barrier(threads)

    def draw(_: int) -> bytes:
        barrier.wait()
        return b"".join(bits.take(BLOCK * (1 + i % 3)) for i in range(rounds))

    for _ in range(20):
        with ThreadPoolExecutor(threads) as pool:
            if not all_distinct(*pool.map(draw, range(threads))):
                return False
    return True


@pytest.fixture
def eager_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_switches")
def test_threads_repeat_no_block() -> None:
    assert threads_repeat_nothing(SystemBits)


@pytest.mark.usefixtures("eager_switches")
def test_a_stream_shared_among_threads_is_caught() -> None:
    assert not threads_repeat_nothing(_Torn)


def test_each_thread_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    bits, seeds = SystemBits(), count_keys(monkeypatch)
    workers = [threading.Thread(target=bits.take, args=(16,)) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(seeds)) == 5


def _threaded_worker(size: int) -> bytes:
    with ThreadPoolExecutor(4) as pool:
        return b"".join(pool.map(lambda _: SYSTEM.take(size), range(8)))


def test_threads_inside_processes_repeat_no_block() -> None:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        drawn = pool.map(_threaded_worker, [1024] * 6, chunksize=1)
    assert all_distinct(*drawn, _threaded_worker(1024))


# --- keys -------------------------------------------------------------------------------------


def rekeys(source: Source, monkeypatch: pytest.MonkeyPatch) -> bool:
    """No key serves more than REKEY_AFTER bytes, by small and by large draws, and keys differ."""
    for size in (16, 1000, 1 << 16):
        with monkeypatch.context() as patch:
            patch.setattr(entropy, "REKEY_AFTER", 1 << 18)
            bits, seeds = source(), count_keys(patch)
            draws = 5 * (1 << 18) // size
            for _ in range(draws):
                bits.take(size)
            per_key = (1 << 18) // size
            if len(seeds) != -(-draws // per_key) or len(set(seeds)) != len(seeds):
                return False
    return True


class _NeverRekeyed(_HookOnly):
    def _stream(self, count: int) -> Any:
        return super()._stream(0)


def test_a_key_serves_a_limited_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rekeys(SystemBits, monkeypatch)
    assert not rekeys(_NeverRekeyed, monkeypatch)


def test_rekeying_at_the_real_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    bits, seeds = SystemBits(), count_keys(monkeypatch)
    array = np.empty(REKEY_AFTER, dtype=np.uint8)
    bits.fill(array)
    assert len(seeds) == 1
    bits.take(1)
    assert len(seeds) == 2
    assert REKEY_AFTER <= 1 << 36  # far below the 2^64 blocks after which counter mode can be told from random bits


def replayed(bits: Bits, steps: list[int | str], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether `take` and `fill` give consecutive parts of AES-CTR streams, computed apart from captured seeds."""
    with monkeypatch.context() as patch:
        seeds, parts = count_keys(patch), []
        for step in steps:
            if isinstance(step, int):
                parts.append(bits.take(step))
            else:
                dtype, size = step.split()
                array = np.empty(int(size), dtype=np.dtype(dtype))
                bits.fill(array)
                parts.append(array.tobytes())
    drawn = b"".join(parts)
    if len(seeds) != 1 or len(seeds[0]) != 48:
        return False
    # counter mode by hand: encrypt the counters one after the other, in electronic code book mode
    counter = int.from_bytes(seeds[0][32:], "big")
    count = -(-len(drawn) // 16)
    plain = b"".join(((counter + i) % (1 << 128)).to_bytes(16, "big") for i in range(count))
    book: CipherContext = Cipher(algorithms.AES(seeds[0][:32]), modes.ECB()).encryptor()
    return drawn == book.update(plain)[: len(drawn)]


STEPS: list[int | str] = [
    *(1, 15, 16, 17, 0, 8, 65535, 65536, 65537, 3, 200_000),
    *("uint64 1", "uint64 8191", "uint64 8192", "uint64 8193", "uint16 32768", "uint16 32769", "uint8 131073", 5),
]


class _Skips(SystemBits):
    """Throws away the rest of a block."""

    def take(self, count: int) -> bytes:
        return super().take(-(-count // BLOCK) * BLOCK)[:count]


def test_the_bits_are_aes_in_counter_mode_with_nothing_skipped_or_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replayed(SystemBits(), STEPS, monkeypatch)
    assert not replayed(_Skips(), STEPS, monkeypatch)


def test_sizes_of_what_is_drawn() -> None:
    bits = SystemBits()
    for size in (0, 1, 16, 65536, 65537, 300_000):
        assert len(bits.take(size)) == size
    array = np.zeros(50_000, dtype=np.uint64)
    bits.fill(array)
    assert np.count_nonzero(array) > 49_990
    bits.fill(np.empty(0, dtype=np.uint16))


# --- T9: no entropy, no answer ----------------------------------------------------------------


class _Zeros(SystemBits):
    """Falls back to a constant when the operating system fails."""

    def take(self, count: int) -> bytes:
        try:
            return super().take(count)
        except EntropyError:
            return bytes(count)

    def fill(self, array: NDArray[Any]) -> None:
        try:
            super().fill(array)
        except EntropyError:
            array[:] = 0


def fails_closed(bits: Bits, error: Exception, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether every draw raises EntropyError and gives nothing while the operating system fails."""

    def urandom(size: int) -> bytes:
        raise error

    noise = DiscreteLaplace(3)
    draws: list[Callable[[], object]] = [
        lambda: bits.take(8),
        lambda: bits.take(100_000),
        lambda: bits.fill(np.empty(10, dtype=np.uint64)),
        noise.sample,
        lambda: noise.sample(10),
        lambda: noise.sample(5000),
        Geometric(40).sample,
        Bernoulli("1/3").sample,
        BernoulliExp(1).sample,
        UniformInteger(1, 6).sample,
        lambda: Laplace(sensitivity=1, epsilon=1).release(5),
        lambda: Laplace(sensitivity=1, epsilon=1).release([1.5, 2.5]),
        lambda: Laplace(sensitivity=1, epsilon=1).release(np.arange(5000)),
    ]
    with monkeypatch.context() as patch:
        for module in ("laplace", "geometric", "bernoulli", "uniform"):
            patch.setattr(importlib.import_module(f"privet.noise.{module}"), "SYSTEM", bits)
        patch.setattr(os, "urandom", urandom)
        for draw in draws:
            try:
                draw()
            except EntropyError as raised:
                if raised.__cause__ is not error or not isinstance(raised, privet.errors.InternalError):
                    return False
            else:
                return False
    return len(bits.take(8)) == 8  # and it recovers


@pytest.mark.parametrize("error", [OSError("no entropy"), NotImplementedError("no source"), BlockingIOError("later")])
def test_without_entropy_there_is_no_answer(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fails_closed(SystemBits(), error, monkeypatch)
    assert not fails_closed(_Zeros(), error, monkeypatch)


def test_a_failure_in_the_middle_of_an_array_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key runs out inside one `fill`, and the operating system has no other."""
    monkeypatch.setattr(entropy, "REKEY_AFTER", 3 << 16)
    bits = SystemBits()
    bits.take(16)

    def urandom(size: int) -> bytes:
        raise OSError

    monkeypatch.setattr(os, "urandom", urandom)
    with pytest.raises(EntropyError):
        bits.fill(np.empty(1 << 18, dtype=np.uint8))
    with pytest.raises(EntropyError):
        bits.take(1 << 17)


# --- no seed ----------------------------------------------------------------------------------

SEEDS = {"seed", "seeds", "random_state", "rng", "generator", "bits", "entropy", "prng", "random", "key", "nonce"}


def seed_parameters(callables: dict[str, Any]) -> list[str]:
    found = []
    for name, thing in callables.items():
        try:
            parameters = inspect.signature(thing).parameters
        except (TypeError, ValueError):
            continue
        found += [f"{name}({p})" for p in parameters if p in SEEDS]
    return found


def public_callables() -> dict[str, Any]:
    """Every public function, class and method of the package; `draw(bits)` and its kin take bits, not seeds."""
    found: dict[str, Any] = {}
    for info in pkgutil.walk_packages(privet.__path__, "privet."):
        if info.name.endswith(".__main__"):
            continue  # it would run
        module = importlib.import_module(info.name)
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != info.name:
                continue
            found[f"{info.name}.{name}"] = thing
            if inspect.isclass(thing):
                for method, value in vars(thing).items():
                    if not method.startswith("_") and callable(value):
                        found[f"{info.name}.{name}.{method}"] = value
    return found


def test_no_public_signature_takes_a_seed() -> None:
    everything = public_callables()
    assert {"privet.noise.laplace.DiscreteLaplace.sample", "privet.mechanisms.additive.Additive.release"} <= set(
        everything
    )
    # below the mechanisms, tests inject a scripted source of bits; in privet.exact, bits are of precision
    # (and so are those of a number or of a stored type)
    seam = (
        "privet.noise.",
        "privet.audit.",
        "privet.exact.",
        "privet.engines.reference.numbers.",
        "privet.tables.stored_types.",
        "privet.mechanisms.ranks.RankChoice.draw",  # a choice may need more counts from an engine, with the same bits
    )
    outside = {name: thing for name, thing in everything.items() if not name.startswith(seam)}
    # a key that signs or verifies, that of a public table, of an object, and of what a vector measures draw nothing
    homes = (
        "tables", "sources", "release", "publication", "session", "engines", "policy", "sql", "cli", "planner.vectors",
        "system.object_addresses", "client", "server.models", "server.accounts.hashing",
    )  # fmt: skip
    known = tuple(f"privet.{name}." for name in homes)
    found = [each for each in seed_parameters(outside) if not (each.endswith("key)") and each.startswith(known))]
    found = [each for each in found if not each.startswith("privet.server.openid.id_token.")]  # the nonce of a sign-in
    assert found == []
    samplers = {name: thing for name, thing in everything.items() if name.endswith((".sample", ".SystemBits"))}
    assert len(samplers) >= 6
    assert seed_parameters(samplers) == []


def test_a_seed_is_found() -> None:
    def sample(size: int, *, seed: int | None = None) -> None: ...

    assert seed_parameters({"sample": sample}) == ["sample(seed)"]
