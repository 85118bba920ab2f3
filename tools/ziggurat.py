"""Writes csrc/wrapper/ziggurat.def, the tables of NumPy's normal and exponential draws, from the routines of the installed NumPy.

    python tools/ziggurat.py [--check]

The routines get words of our choice in place of random ones. A table has 256 strips: a word is a strip's number and a position in
the strip, and the draw is the position times the strip's width. A routine that asks for nothing more has taken the position as one
that lies within the strip above, so the first position for which it asks is found by bisection. (Marsaglia and Tsang, The Ziggurat
Method for Generating Random Variables, Journal of Statistical Software 5(8), 2000.)
"""

import ctypes
import sys
from pathlib import Path

import numpy.random._generator as routines

FILE = Path(__file__).parent.parent / "csrc" / "wrapper" / "ziggurat.def"
STRIPS = 256
HEAD = """/* Tables of NumPy's normal and exponential draws, by tools/ziggurat.py.
 *
 *   NORMAL(inside, width), EXPONENTIAL(inside, width)
 *
 * inside: positions below it are within the strip above. width: of one position. */
"""
Word = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
HalfWord = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
Double = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class Bits(ctypes.Structure):
    """NumPy's bitgen_t."""

    _fields_ = [("state", ctypes.c_void_p), ("next_uint64", Word), ("next_uint32", HalfWord), ("next_double", Double), ("next_raw", Word)]


class Probe:
    """A routine of NumPy's with words of our choice. shift, bits: the place and the width of a position in a word."""

    def __init__(self, name: str, shift: int, bits: int, unused: int) -> None:
        self.routine = getattr(ctypes.CDLL(routines.__file__), name)
        self.routine.restype = ctypes.c_double
        self.shift, self.bits, self.unused = shift, bits, unused
        word = Word(lambda _: self.word)
        self.given = Bits(None, word, HalfWord(lambda _: 0), Double(self.next_double), word)

    def next_double(self, _: int) -> float:
        """A number with which a position is accepted, within the strip and in the tail."""
        self.is_whole = False
        return 0.0 if self.strip else 0.5

    def draw(self, strip: int, position: int) -> float:
        """The draw of a word. `is_whole`: the routine needed only this one."""
        self.strip, self.is_whole = strip, True
        self.word = (position << self.shift | strip) << self.unused
        return float(self.routine(ctypes.byref(self.given)))

    def row(self, strip: int) -> tuple[int, float]:
        """Bounds of the strip."""
        low, high = 0, 1 << self.bits
        while low < high:
            middle = (low + high) // 2
            self.draw(strip, middle)
            low, high = (middle + 1, high) if self.is_whole else (low, middle)
        small = 1 << self.bits - 4
        return low, self.draw(strip, small) / small


def text() -> str:
    """The file."""
    made = HEAD
    for name, probe in [("NORMAL", Probe("random_standard_normal", 9, 52, 0)), ("EXPONENTIAL", Probe("random_standard_exponential", 8, 53, 3))]:
        rows = [probe.row(strip) for strip in range(STRIPS)]
        cells = [f"{name}({inside:#x}, {width.hex()})" for inside, width in rows]
        made += "".join(f"{a} {b}\n" for a, b in zip(cells[::2], cells[1::2], strict=True)) + f"#undef {name}\n"
    return made


def main() -> None:
    """Write the file, or compare."""
    if "--check" in sys.argv[1:]:
        sys.exit(FILE.read_text() != text() and f"{FILE} is not NumPy's")
    FILE.write_text(text())


if __name__ == "__main__":
    main()
