"""`tt2gl.lock`: what kernels compiled to when somebody last said that it is right.

    [softmax.py softmax_kernel sm90 triton-3.7.1 4f0c21ab]
    launch: *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 1024; num_warps=4, num_stages=3, num_ctas=1
    loads: 1x128
    stores: 1x128
    registers: 22

One block for each kernel, target, Triton and launch, sorted, with a head that nobody else has and a line for each
fact, so that changes to different kernels merge. What is none is left out. The last word of a head is a digest of the
launch. Blocks of ports say what they were made of:

    [port softmax_gluon.py]
    original: softmax.py 1a2b3c4d5e6f7081
    text: 8899aabbccddeeff
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tt2gl.check.lowering import NUMBERS, Access, Lowering
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.files import write_text

NAME = "tt2gl.lock"
_HEADER = "# What kernels compile to. Written by `tt2gl check --update`, held by `tt2gl check`.\nversion: 1\n"


@dataclass(frozen=True, order=True)
class Key:
    """What a block is of. `file` is relative to the folder of the lock; `launch` is a label (`measure.label`)."""

    file: str
    kernel: str
    target: str
    triton: str
    launch: str


@dataclass(frozen=True)
class Port:
    """A Gluon file made of another: digests of both as they were then; `target` where it is known."""

    original: str
    original_digest: str
    digest: str
    target: str | None = None


@dataclass(frozen=True)
class Lock:
    """All of the file: lowerings, and ports by their files."""

    kernels: Mapping[Key, Lowering] = field(default_factory=dict)
    ports: Mapping[str, Port] = field(default_factory=dict)


def digest(text: str) -> str:
    """Sixteen hexadecimal digits that tell texts apart; line ends do not count, as a checkout may change them."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:16]


# ------------------------------------------------------------------------------------------------------ writing


def write_lock(path: Path, lock: Lock) -> None:
    """Write the lock whole or not at all. Raises DiagnosticError TTG005 where that fails."""
    write_text(path, lock_text(lock))


def lock_text(lock: Lock) -> str:
    """The text of a lock: the same for equal locks."""
    blocks = [_kernel_block(key, lowering) for key, lowering in sorted(lock.kernels.items(), key=lambda item: item[0])]
    blocks += [_port_block(file, port) for file, port in sorted(lock.ports.items())]
    return "\n".join([_HEADER, *("".join(f"{line}\n" for line in block) for block in blocks)])


def _kernel_block(key: Key, lowering: Lowering) -> Iterator[str]:
    yield f"[{_word(key.file)} {key.kernel} {key.target} triton-{key.triton} {digest(key.launch)[:8]}]"
    yield f"launch: {key.launch}"
    if not lowering.compiles:
        yield "compiles: no"
        return
    for name, accesses in (("loads", lowering.loads), ("stores", lowering.stores)):
        if accesses:
            yield f"{name}: {', '.join(map(str, accesses))}"
    for name, counts in (("mma", lowering.mma), ("ring", lowering.rings)):
        for what, count in sorted(counts.items()):
            yield f"{name}: {count} {what}"
    for name in NUMBERS:
        if getattr(lowering, name):
            yield f"{name}: {getattr(lowering, name)}"


def _port_block(file: str, port: Port) -> Iterator[str]:
    yield f"[port {_word(file)}]"
    yield f"original: {_word(port.original)} {port.original_digest}"
    yield f"text: {port.digest}"
    if port.target is not None:
        yield f"target: {port.target}"


def _word(path: str) -> str:
    """A path without what separates words."""
    return path.replace("%", "%25").replace(" ", "%20").replace("]", "%5D")


def _path(word: str) -> str:
    return word.replace("%5D", "]").replace("%20", " ").replace("%25", "%")


# ------------------------------------------------------------------------------------------------------ reading


class _Malformed(Exception):
    """A line is not as a lock has it."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_lock(path: Path) -> Lock | None:
    """The lock of that file, None where there is none. Raises DiagnosticError TTG601 where it cannot be read."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, 0, str(error)) from None
    kernels: dict[Key, Lowering] = {}
    ports: dict[str, Port] = {}
    try:
        for block in _blocks(text):
            _read_block(block, kernels, ports)
    except _Malformed as error:
        raise _unreadable(path, error.line, str(error)) from None
    return Lock(kernels, ports)


def _unreadable(path: Path, line: int, reason: str) -> DiagnosticError:
    message = f"The lock cannot be read: {reason}."
    hint = "Settle the conflict, or delete the file and run `tt2gl check --update`."
    return DiagnosticError(Diagnostic("TTG601", Severity.ERROR, str(path), line, 0, message, hint), ExitCode.UNKNOWN)


@dataclass(frozen=True)
class _Block:
    """The number of its first line, the words of its head, and its lines by name."""

    line: int
    head: list[str]
    body: dict[str, list[str]]


def _blocks(text: str) -> Iterator[_Block]:
    block = _Block(1, [], {})
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"<{7}|={7}|>{7}|\|{7}", line):
            raise _Malformed(number, "two versions of it were merged, and did not agree here")
        if line.startswith("[") and line.endswith("]"):
            yield block
            block = _Block(number, line[1:-1].split(), {})
        elif line.strip() and not line.startswith("#"):
            name, colon, value = line.partition(": ")
            if not colon:
                raise _Malformed(number, "a line has no name and value")
            block.body.setdefault(name, []).append(value)
    yield block


def _read_block(block: _Block, kernels: dict[Key, Lowering], ports: dict[str, Port]) -> None:
    head, body = block.head, block.body
    try:
        if not head:
            if body["version"] != ["1"]:
                raise _Malformed(block.line, f"it has version {body['version'][0]}, and this tt2gl reads 1")
        elif head[0] == "port":
            ports[_path(head[1])] = _read_port(body)
        else:
            file, kernel, target, triton, _ = head
            key = Key(_path(file), kernel, target, triton.removeprefix("triton-"), body["launch"][0])
            kernels[key] = _read_lowering(body)
    except (KeyError, ValueError, IndexError):
        raise _Malformed(block.line, "a block is not as tt2gl writes it") from None


def _read_port(body: Mapping[str, list[str]]) -> Port:
    original, original_digest = body["original"][0].split()
    return Port(_path(original), original_digest, body["text"][0], body.get("target", [None])[0])


def _read_lowering(body: Mapping[str, list[str]]) -> Lowering:
    if body.get("compiles") == ["no"]:
        return Lowering(False)
    numbers = {name: int(body.get(name, ["0"])[0]) for name in NUMBERS}
    mma, rings = (
        {what: int(count) for count, _, what in (value.partition(" ") for value in body.get(name, []))}
        for name in ("mma", "ring")
    )
    loads, stores = (tuple(_read_accesses(body.get(name, []))) for name in ("loads", "stores"))
    return Lowering(True, loads, stores, mma, rings, **numbers)


_ACCESS = re.compile(r"(\d+)x(\d+)(?: over ([\dx\[\]]+))?( async)?")


def _read_accesses(values: Iterable[str]) -> Iterator[Access]:
    for value in values:
        for text in value.split(", "):
            found = _ACCESS.fullmatch(text)
            if found is None:
                raise ValueError(text)
            tile = found[3].split("x") if found[3] else []
            warp = tuple(int(size.strip("[]")) for size in tile)
            fastest = next((place for place, size in enumerate(tile) if size.startswith("[")), 0)
            yield Access(int(found[1]), int(found[2]), found[4] is not None, warp, fastest)
