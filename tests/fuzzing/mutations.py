"""Ways to damage a file, drawn by a seeded generator."""

import io
import json
import struct
import zipfile
from collections.abc import Callable

import numpy as np

Rng = np.random.Generator
Mutation = Callable[[bytes, Rng], bytes]

EXTREMES = [0, 1, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
TOKENS = [
    b"\x1b[2J", b"\x00", b"\r", b"\x07", "\u202e".encode(), b"\xff\xfe", b"\xc3(", b'"', b"'", b",",
    b"[" * 5000, b"{\"a\":" * 3000, b"- " * 2000, b"NaN", b"-Infinity", b"1e999", b"9" * 6000,
    b"&a [*a, *a]", b"\n\n", b"null", b"true", b"!!python/object:os.system", b"../../etc/passwd",
    b"x" * 20000, b"\xef\xbb\xbf", b"<f8", b"|O", b"(", b"))))", b"\x80\x04", b"\x85" * 3000,
    b"2\x86" * 60, b"&b [*b]", b"{", b"%", b"slide_id", b"-1", b"0", b"1e300", b":", b"\t",
]  # fmt: skip


def colliding_keys(content: bytes, rng: Rng) -> bytes:
    """A file of torch.save whose dictionary has thousands of numbers with one hash."""
    keys = (
        (i * (2**61 - 1)).to_bytes(10, "little") for i in range(1, int(rng.integers(2, 80_000)))
    )
    items = b"".join(b"\x8a\x0a" + key + b"K\x01" for key in keys)
    return _torch_file(b"\x80\x02}(" + items + b"u.")


def negative_bits(content: bytes, rng: Rng) -> bytes:
    """A tensor whose metadata say that its numbers mean their opposites."""
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
    storage += b"X\x03\x00\x00\x00cpuK\x04tQ"
    bits = [b"}X\x03\x00\x00\x00neg\x88s", b"}X\x04\x00\x00\x00conj\x88s", b"}", b"K\x01", b"\x88"]
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x02K\x02\x86K\x02K\x01"
    tensor += b"\x86\x89N" + bits[int(rng.integers(len(bits)))] + b"tR"
    program = b"\x80\x02}X\x09\x00\x00\x00fc.weight" + tensor + b"s."
    return _torch_file(program, numbers=bytes(16))


def _torch_file(program: bytes, numbers: bytes = b"") -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("archive/data.pkl", program)
        archive.writestr("archive/data/0", numbers)
    return held.getvalue()


def wide_table(content: bytes, rng: Rng) -> bytes:
    """As many columns, or rows, as no table has."""
    number = int(rng.integers(2, 400_000))
    if rng.random() < 0.5:
        return content.partition(b"\n")[0] + b"".join(b",c%d" % i for i in range(number)) + b"\na\n"
    header, *rows = content.splitlines(keepends=True)
    return header + b"".join(b"r%d%s" % (i, rows[0]) for i in range(number))


PIPE = b"a pipe instead of the file"


def become_a_pipe(content: bytes, rng: Rng) -> bytes:
    return PIPE


def flip_bits(content: bytes, rng: Rng) -> bytes:
    damaged = bytearray(content)
    reach = len(damaged) if rng.random() < 0.5 else min(len(damaged), 2000)  # headers come first
    for place in rng.integers(0, max(reach, 1), int(rng.integers(1, 9))):
        if place < len(damaged):
            damaged[place] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def cut(content: bytes, rng: Rng) -> bytes:
    return content[: int(rng.integers(0, len(content) + 1))]


def blank(content: bytes, rng: Rng) -> bytes:
    start, length = _slice(content, rng)
    filling = bytes([int(rng.choice([0, 255]))]) * length
    return content[:start] + filling + content[start + length :]


def remove(content: bytes, rng: Rng) -> bytes:
    start, length = _slice(content, rng)
    return content[:start] + content[start + length :]


def repeat(content: bytes, rng: Rng) -> bytes:
    start, length = _slice(content, rng)
    part = content[start : start + length]
    return content[:start] + part * int(rng.integers(2, 20)) + content[start + length :]


def insert_noise(content: bytes, rng: Rng) -> bytes:
    start, length = _slice(content, rng)
    return content[:start] + rng.bytes(length) + content[start:]


def insert_token(content: bytes, rng: Rng) -> bytes:
    start, length = _slice(content, rng)
    token = TOKENS[int(rng.integers(len(TOKENS)))]
    return content[:start] + token + content[start + (length if rng.random() < 0.5 else 0) :]


def write_extreme(content: bytes, rng: Rng) -> bytes:
    start, _ = _slice(content, rng)
    value = EXTREMES[int(rng.integers(len(EXTREMES)))]
    kind, mask = [("<Q", 2**64 - 1), ("<I", 2**32 - 1), ("<H", 2**16 - 1)][int(rng.integers(3))]
    packed = struct.pack(kind, value & mask)
    return content[:start] + packed + content[start + len(packed) :]


def replace_value(content: bytes, rng: Rng) -> bytes:
    """Another value somewhere in a JSON text, which stays JSON."""
    try:
        whole = json.loads(content)
    except ValueError:
        return insert_token(content, rng)
    holder, key = _somewhere(whole, rng)
    odd = [None, -1, 10**30, 1e308, "\x1b[2J", [], {}, [[]] * 50, "x" * 3000, True, float("nan")]
    if holder is None:
        whole = odd[int(rng.integers(len(odd)))]
    elif rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = odd[int(rng.integers(len(odd)))]
    return json.dumps(whole).encode()


def inside_zip(content: bytes, rng: Rng) -> bytes:
    """A damaged member of an archive whose checksums are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        return flip_bits(content, rng)
    if not members:
        return cut(content, rng)
    chosen = sorted(members)[int(rng.integers(len(members)))]
    members[chosen] = BYTES[int(rng.integers(len(BYTES)))](members[chosen], rng)
    written = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if rng.random() < 0.3 else zipfile.ZIP_STORED
    with zipfile.ZipFile(written, "w", kind) as archive:
        for name, member in members.items():
            if name != chosen or rng.random() > 0.05:
                archive.writestr(name, member)
    return written.getvalue()


def inside_header(content: bytes, rng: Rng) -> bytes:
    """A damaged header of a safetensors file whose length is right."""
    (length,) = struct.unpack("<Q", content[:8].ljust(8, b"\0"))
    if length > len(content):
        return flip_bits(content, rng)
    change = replace_value if rng.random() < 0.7 else insert_token
    header = change(content[8 : 8 + length], rng)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


BYTES: list[Mutation] = [
    flip_bits, cut, blank, remove, repeat, insert_noise, insert_token, write_extreme,
]  # fmt: skip
"""For files of any kind."""


def _slice(content: bytes, rng: Rng) -> tuple[int, int]:
    start = int(rng.integers(0, len(content) + 1))
    return start, int(rng.integers(1, 64))


def _somewhere(value: object, rng: Rng) -> tuple[dict | list | None, object]:
    holder: dict | list | None = None
    key: object = None
    while isinstance(value, dict | list) and value and (holder is None or rng.random() < 0.75):
        holder = value
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[int(rng.integers(len(keys)))]
        value = value[key]  # type: ignore[call-overload,index]
    return holder, key
