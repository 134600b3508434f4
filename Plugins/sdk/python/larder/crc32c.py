"""CRC-32C (Castagnoli). Uses the `crc32c` or `google_crc32c` module where one is installed, else tables of its own.

The pure form takes 8 bytes a step and makes some 10 MB/s; the modules are hundreds of times quicker.
"""

from __future__ import annotations

from typing import Callable, List


def _tables() -> List[List[int]]:
    first = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        first.append(value)
    tables = [first]
    for _ in range(7):
        last = tables[-1]
        tables.append([first[value & 0xFF] ^ value >> 8 for value in last])
    return tables


_T0, _T1, _T2, _T3, _T4, _T5, _T6, _T7 = _tables()


def pure_crc32c(data: bytes, crc: int = 0) -> int:
    """CRC-32C in Python, slicing by 8. `crc` continues an earlier result."""
    crc ^= 0xFFFFFFFF
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at:at + 8], "little") ^ crc
        crc = (_T7[word & 255] ^ _T6[word >> 8 & 255] ^ _T5[word >> 16 & 255] ^ _T4[word >> 24 & 255]
               ^ _T3[word >> 32 & 255] ^ _T2[word >> 40 & 255] ^ _T1[word >> 48 & 255] ^ _T0[word >> 56])
    for byte in data[whole:]:
        crc = _T0[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _choose() -> "tuple[Callable[..., int], bool]":
    try:
        import crc32c as module  # type: ignore
        candidate: Callable[..., int] = module.crc32c
        if candidate(b"123456789") == 0xE3069283:
            return candidate, True
    except (ImportError, AttributeError, TypeError):
        pass
    try:
        import google_crc32c as google  # type: ignore

        def by_google(data: bytes, crc: int = 0) -> int:
            return int(google.extend(crc, bytes(data)))

        if by_google(b"123456789") == 0xE3069283:
            return by_google, True
    except (ImportError, AttributeError, TypeError):
        pass
    return pure_crc32c, False


#: The quickest there is, and whether it is a native one (then checking every entry costs nothing worth saving).
crc32c, is_native = _choose()
