"""A matrix of weights as a small picture that a page can hold: one pixel for each number, more opaque where it is more.

The format is PNG with a palette (ISO/IEC 15948).
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from struct import pack

BLUE = bytes((66, 133, 244))


def picture(rows: Sequence[Sequence[float]]) -> str:
    """A data address of the picture of numbers from 0 to 1.

    >>> picture([[0.0, 1.0]])[:22]
    'data:image/png;base64,'
    """
    size = pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)
    levels = b"".join(b"\0" + bytes(level(x) for x in row) for row in rows)
    palette, opacity = chunk(b"PLTE", BLUE * 256), chunk(b"tRNS", bytes(range(256)))
    body = chunk(b"IHDR", size) + palette + opacity + chunk(b"IDAT", zlib.compress(levels, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def level(x: float) -> int:
    """A number from 0 to 1 as one of 256 levels."""
    return round(255 * min(max(x, 0.0), 1.0))


def chunk(name: bytes, data: bytes) -> bytes:
    """A part of a PNG file: length, name, data, checksum."""
    return pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data))
