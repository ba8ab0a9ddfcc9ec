"""The first line of a run file, which says whether the rest is whole and unchanged.

results/store/seal.cc writes it, and refuses the same files with the same words.
"""

from __future__ import annotations

import os
import re
import stat
from typing import BinaryIO

import numpy

SCHEMA_VERSION = 4  # the newest that is understood; all older ones are

_SEAL_BYTES = 512  # HDF5 begins behind it
_MAGIC = b"Lockstep run file: "
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_LINE = re.compile(_MAGIC + rb"HDF5 from byte 512 on\. schema=(\d+) bytes=(\d+) "
                   rb"checksum=([0-9a-f]+)")
_BLOCK = 1 << 20
_WORD = 2**64 - 1
_NAME_A_RUN = "name a file that a run wrote"


class Error(Exception):
    """A file that cannot be read as asked. One line: the file, the reason, the remedy."""


def refusal(path: str, reason: str, remedy: str) -> Error:
    return Error(f"{path}: {reason}; {remedy}")


def check(path: str, verify: bool) -> None:
    """Error unless the file is a run of a schema that is known and, with `verify`, unchanged."""
    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            kind = "is a directory" if stat.S_ISDIR(facts.st_mode) else "is no regular file"
            raise refusal(path, kind, _NAME_A_RUN)
        file = open(path, "rb")
    except OSError as error:
        raise refusal(path, f"cannot be opened ({error.strerror})", _NAME_A_RUN) from error
    with file:
        try:
            _check(path, file, facts.st_size, verify)
        except OSError as error:
            raise refusal(path, f"cannot be read ({error.strerror})",
                          "use another copy of it") from error


def _check(path: str, file: BinaryIO, size: int, verify: bool) -> None:
    head = file.read(_SEAL_BYTES)
    line = _LINE.match(head)
    if line is None:
        raise refusal(path, *_why_foreign(head))
    schema, claimed = int(line[1]), int(line[2])
    if schema > SCHEMA_VERSION:
        raise refusal(path, f"of schema {schema}, newer than this program's {SCHEMA_VERSION}",
                      "read it with a newer Lockstep")
    if not verify:
        return
    if size != claimed:
        kind = "truncated:" if size < claimed else "altered:"
        raise refusal(path, f"{kind} {size} of {claimed} bytes",
                      "use a whole, unmodified copy of it")
    if _checksum(file) != int(line[3], 16):
        raise refusal(path, "its contents changed after it was written (the checksum differs)",
                      "use an unmodified copy of it")


def _why_foreign(head: bytes) -> tuple[str, str]:
    """What a file without our first line is: (reason, remedy)."""
    if not head:
        return "the file is empty", _NAME_A_RUN
    if head.startswith(_HDF5_MAGIC):
        return "an HDF5 file, but not of Lockstep", "name a file that a run wrote, unchanged"
    if head[:len(_MAGIC)] == _MAGIC[:len(head)]:
        if len(head) == _SEAL_BYTES:
            return "its first line is damaged", "use an unmodified copy of it"
        return f"truncated to {len(head)} bytes", "use a whole copy of it"
    return "not an HDF5 file of Lockstep", _NAME_A_RUN


def _checksum(file: BinaryIO) -> int:
    """Of the rest of the file, as seal.cc computes it: four lanes over 64-bit words."""
    lanes, length = [1, 2, 3, 4], 0
    while block := file.read(_BLOCK):
        length += len(block)
        words = numpy.frombuffer(block + bytes(-len(block) % 32), "<u8")
        for number, lane in enumerate(lanes):
            for word in words[number::4].tolist():
                lane = (lane ^ word) * 0x9e3779b97f4a7c15 & _WORD
                lane ^= lane >> 29
            lanes[number] = lane
    value = length
    for lane in lanes:
        value = _mixed(value ^ lane)
    return value


def _mixed(word: int) -> int:
    """SplitMix64's finalizer."""
    word = word + 0x9e3779b97f4a7c15 & _WORD
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9 & _WORD
    word = (word ^ word >> 27) * 0x94d049bb133111eb & _WORD
    return word ^ word >> 31
