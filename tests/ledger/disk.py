"""What a process does to its files, seen from outside: every write and every sync, and each disk that could be left.

A `Recording` is made by ptrace, as a debugger does it, so SQLite and Privet run as they are. A kill leaves every write
before it. A power cut leaves every write that was synced, and any part of the others: the disk chooses which sectors.
"""

from __future__ import annotations

import ctypes
import os
import platform
import random
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SECTOR = 512
_CALLS = {
    "x86_64": {1: "write", 18: "pwrite", 74: "sync", 75: "sync", 77: "truncate", 257: "open", 87: "unlink"},
    "aarch64": {64: "write", 68: "pwrite", 82: "sync", 83: "sync", 46: "truncate", 56: "open", 35: "unlinkat"},
}
CAN_RECORD = sys.platform == "linux" and platform.machine() in _CALLS
_TRACEME, _SYSCALL, _SETOPTIONS, _SYSCALL_INFO = 0, 24, 0x4200, 0x420E
_OPTIONS = 1 | 1 << 20  # system calls are told from signals; the child ends with its parent
_STOP = signal.SIGTRAP | 0x80


@dataclass(frozen=True)
class Step:
    """One thing that was done: to a file, or said by the process about itself."""

    kind: str
    name: str
    offset: int = 0
    data: bytes = b""


Files = dict[str, bytes]


@dataclass
class Recording:
    """The files before, what was done to them, and the files after."""

    before: Files
    steps: list[Step] = field(default_factory=list)
    after: Files = field(default_factory=dict)

    def said(self, count: int) -> set[str]:
        """What the process had said after so many steps."""
        return {step.name for step in self.steps[:count] if step.kind == "say"}

    def killed(self, count: int) -> Files:
        """The files after a kill."""
        return _applied(self.before, self.steps[:count])

    def unsynced(self, count: int) -> list[int]:
        """Which of the first steps the disk may not have yet. A new name is on disk when its folder is synced."""
        found: list[int] = []
        for at, step in enumerate(self.steps[:count]):
            if step.kind == "sync":
                found = [n for n in found if not _settles(step, self.steps[n])]
            elif step.kind != "say":
                found.append(at)
        return found

    def cut(self, count: int, keeps: Callable[[int], bytes | bool]) -> Files:
        """The files after a power cut. `keeps` says of an unsynced step whether it is on disk, or which sectors of it.

        Sectors are given as bytes, one for each sector of a write: it is on disk if its byte is odd.
        """
        open_ = set(self.unsynced(count))
        steps = list[Step]()
        for at, step in enumerate(self.steps[:count]):
            kept = keeps(at) if at in open_ else True
            if isinstance(kept, bool) or step.kind != "write":
                steps += [step] if kept else []
            else:
                steps += _torn(step, kept)
        return _applied(self.before, steps)

    def cuts(self, count: int, draws: random.Random, most: int) -> Iterator[Files]:
        """Disks that a power cut could leave: with none, one, or all but one of the open writes; and torn ones."""
        open_ = self.unsynced(count)
        yield self.cut(count, lambda at: False)
        if len(open_) < 6:
            for chosen in range(1, 2 ** len(open_)):
                yield self.cut(count, lambda at, chosen=chosen: bool(chosen >> open_.index(at) & 1))  # type: ignore[misc]
        else:
            for one in draws.sample(open_, min(most, len(open_))):
                yield self.cut(count, lambda at, one=one: at == one)  # type: ignore[misc]
                yield self.cut(count, lambda at, one=one: at != one)  # type: ignore[misc]
        for _ in range(most if open_ else 0):
            yield self.cut(count, lambda at: draws.randbytes(64))


def _settles(sync: Step, step: Step) -> bool:
    if sync.name == "":  # the folder
        return step.kind in ("create", "unlink")
    return step.name == sync.name and step.kind in ("write", "truncate")


def _torn(step: Step, kept: bytes) -> list[Step]:
    parts, start = list[Step](), step.offset
    while start < step.offset + len(step.data):
        end = min((start // SECTOR + 1) * SECTOR, step.offset + len(step.data))
        if kept[start // SECTOR % len(kept)] & 1:
            parts.append(Step("write", step.name, start, step.data[start - step.offset : end - step.offset]))
        start = end
    return parts


def _applied(before: Files, steps: list[Step]) -> Files:
    """A file whose name is not on disk is not there, whatever was written to it."""
    files = {name: bytearray(content) for name, content in before.items()}
    for step in steps:
        if step.kind == "create":
            files.setdefault(step.name, bytearray())
        elif step.kind == "unlink":
            files.pop(step.name, None)
        elif (file := files.get(step.name)) is None:
            continue
        elif step.kind == "write":
            file += bytes(max(step.offset - len(file), 0))
            file[step.offset : step.offset + len(step.data)] = step.data
        elif step.kind == "truncate":
            del file[step.offset :]
            file += bytes(step.offset - len(file))
    return {name: bytes(content) for name, content in files.items()}


def contents(folder: Path) -> Files:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def do(step: Step, folder: Path) -> None:
    """Do in a folder what was recorded, to files that others may have open."""
    path = folder / step.name
    if step.kind == "create":
        path.touch(0o600)
    elif step.kind == "unlink":
        path.unlink()
    elif step.kind == "write":
        with path.open("r+b") as file:
            file.seek(step.offset)
            file.write(step.data)
    elif step.kind == "truncate":
        os.truncate(path, step.offset)


def place(files: Files, folder: Path) -> None:
    """Put files into a folder, and nothing else."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def record(folder: Path, job: Callable[[Callable[[str], None]], None]) -> Recording:
    """Fork a process that does a job, and record what it does in a folder. The job gets a function to say things."""
    made = Recording(contents(folder))
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _trace(_TRACEME, 0, 0, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            job(lambda text: _say(sink, text))
            code = 0
        finally:
            os._exit(code)
    try:
        _watch(child, folder.resolve(), made)
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(source)
        os.close(sink)
    made.after = contents(folder)
    return made


def _say(sink: int, text: str) -> None:
    os.write(sink, text.encode())


def _watch(child: int, folder: Path, made: Recording) -> None:
    if not os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]):
        pytest.skip("this system does not let a process be traced")
    _trace(_SETOPTIONS, child, 0, _OPTIONS)
    passed, begun = 0, None
    while True:
        _trace(_SYSCALL, child, 0, passed)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSTOPPED(status):
            assert os.waitstatus_to_exitcode(status) == 0, "the job failed"
            return
        passed = 0
        if os.WSTOPSIG(status) != _STOP:
            passed = os.WSTOPSIG(status)
            continue
        info = ctypes.create_string_buffer(88)
        _trace(_SYSCALL_INFO, child, len(info), ctypes.addressof(info))
        if info[0] == b"\x01":
            begun = _step(child, folder, *struct.unpack_from("@7Q", info, 24))
        elif info[0] == b"\x02" and begun is not None:
            (result,) = struct.unpack_from("@q", info, 24)
            assert begun.kind != "write" or result in (len(begun.data), -4), "a write that was cut short"
            if result >= 0:
                made.steps.append(begun)
            begun = None


def _step(child: int, folder: Path, number: int, *arguments: int) -> Step | None:
    """What a system call would do to the folder."""
    call, (first, second, third, fourth, *_) = _CALLS[platform.machine()].get(number), arguments
    if call in ("open", "unlink", "unlinkat"):
        path = Path(_text(child, first if call == "unlink" else second)).resolve()
        if path.parent != folder or (call == "open" and not third & os.O_CREAT):
            return None
        return Step("create" if call == "open" else "unlink", path.name)
    if call is None:
        return None
    path = Path(f"/proc/{child}/fd/{first}").readlink()
    if path.name.startswith("pipe:") and call == "write":
        return Step("say", _memory(child, second, third).decode())
    if path == folder and call == "sync":
        return Step("sync", "")
    if path.parent != folder:
        return None
    assert call != "write", "a write without its place"
    if call == "pwrite":
        return Step("write", path.name, fourth, _memory(child, second, third))
    return Step(call, path.name, second if call == "truncate" else 0)


def _memory(child: int, start: int, count: int) -> bytes:
    with Path(f"/proc/{child}/mem").open("rb", buffering=0) as memory:
        return os.pread(memory.fileno(), count, start)


def _text(child: int, start: int) -> str:
    found = b""
    while b"\0" not in found:
        found += _memory(child, start + len(found), 4096 - (start + len(found)) % 4096)
    return os.fsdecode(found.split(b"\0")[0])


def _trace(request: int, process: int, address: int, data: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    arguments = (ctypes.c_long(request), ctypes.c_long(process), ctypes.c_void_p(address), ctypes.c_void_p(data))
    if libc.ptrace(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
