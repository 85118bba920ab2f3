"""Compiles csrc/device/stencil/stencils.h and writes the machine code of each stencil, and the places in it that
are entered when it is copied, as tables of C. Where the compiler does not make code for x86-64, the tables are empty.

    python tools/make_stencils.py OUTPUT.c
"""

import hashlib
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

CSRC = Path(__file__).parent.parent / "csrc"
SOURCE = CSRC / "device" / "stencil" / "stencils.h"
# x86-64-v3 as levels.def has it; what keeps values as they are, as compiler.c has it; and code that holds nowhere
# but in itself.
LEVEL = "-march=x86-64 -mcx16 -mpopcnt -mavx -mavx2 -mbmi -mbmi2 -mf16c -mfma -mlzcnt -mmovbe".split()
VALUES = "-ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -fno-strict-aliasing".split()
CODE = (
    "-O3 -std=gnu11 -w -fno-pic -mcmodel=small -ffunction-sections -fomit-frame-pointer -fno-stack-protector "
    "-fcf-protection=none -fno-asynchronous-unwind-tables -mno-vzeroupper -fno-tree-loop-distribute-patterns -g0"
).split()
LONGEST = {"stencil_": 400, "row_": 120}  # bytes of one stencil: the interpreter's function is called for a longer row of ops.def
NUMBER, COUNT, WIDE, NEXT, TARGET, POOL = range(6)  # CiStencilHole
R_PC32, R_PLT32 = 2, 4  # of the ABI: relocations
NUMBERS = {1: WIDE, 10: COUNT, 11: NUMBER}  # R_64, R_32, R_32S


class Object:
    """A relocatable object in ELF64."""

    def __init__(self, data):
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18) != (62,):
            raise ValueError("no object for x86-64")
        (offset,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + k * size) for k in range(count)]
        self.names = [self.text(self.sections[names], section[0]) for section in self.sections]
        table = next(section for section in self.sections if section[1] == 2)
        strings = self.sections[table[6]]
        self.symbols = []
        for at in range(table[4], table[4] + table[5], 24):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
            self.symbols.append((self.text(strings, name), section, value))

    def text(self, section, offset):
        start = section[4] + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    def bytes(self, number):
        section = self.sections[number]
        return self.data[section[4] : section[4] + section[5]]

    def relocations(self, number):
        for section in self.sections:
            if section[1] == 4 and section[7] == number:
                for at in range(section[4], section[4] + section[5], 24):
                    place, info, addend = struct.unpack_from("<QQq", self.data, at)
                    yield place, info & 0xFFFFFFFF, self.symbols[info >> 32], addend


class Pool:
    """Constants that stencils read."""

    def __init__(self):
        self.bytes, self.starts = b"", {}

    def place(self, made, section):
        if section not in self.starts:
            self.bytes += bytes(-len(self.bytes) % 32)
            self.starts[section] = len(self.bytes)
            self.bytes += made.bytes(section)
        return self.starts[section]


def stencil(made, number, pool, longest):
    """The code of a function, and its places: (offset, kind, number of the hole, addend). None: it is not copied."""
    code, places = made.bytes(number), []
    if len(code) > longest:
        return None
    for offset, kind, (name, section, value), addend in made.relocations(number):
        if name.startswith("hole_") and kind in NUMBERS:
            places.append((offset, NUMBERS[kind], int(name[5:]), addend))
        elif name in ("next", "target") and kind in (R_PC32, R_PLT32) and addend == -4:
            places.append((offset, NEXT if name == "next" else TARGET, 0, 0))
        elif section and made.names[section].startswith(".rodata") and kind == R_PC32:
            places.append((offset, POOL, 0, pool.place(made, section) + value + addend + 4))
        else:
            return None
    if places and places[-1][:2] == (len(code) - 4, NEXT) and code[-5] == 0xE9:
        code, places = code[:-5], places[:-1]
    return code, tuple(places)


def stencils(made):
    pool, found = Pool(), {}
    for number, name in enumerate(made.names):
        for kind, longest in LONGEST.items():
            if name.startswith(f".text.{kind}") and (piece := stencil(made, number, pool, longest)) is not None:
                found[name[len(f".text.{kind}") :]] = piece
    return dict(sorted(found.items())), pool.bytes


def numbers(values):
    return re.sub(r"(.{1,110},)", r"    \1\n", ",".join(map(str, values)) + ",") if values else "    0,\n"


def tables(found, pool):
    """The text of the tables. Stencils that are alike share their code."""
    code, places, starts, rows = b"", [], {}, []
    for name, piece in found.items():
        if piece not in starts:
            starts[piece] = (len(code), len(places))
            code += piece[0]
            places += piece[1]
        at, first = starts[piece]
        rows.append(f'    {{"{name}", {at}, {len(piece[0])}, {first}, {len(piece[1])}}},\n')
    lines = "".join(f"    {{{offset}, {kind}, {hole}, {addend}}},\n" for offset, kind, hole, addend in places)
    return (
        '#include "device/stencil/stencil.h"\n\n'
        f"const unsigned char ci_stencil_code[] = {{\n{numbers(code)}}};\n"
        f"const CiStencilLocation ci_stencil_locations[] = {{\n{lines or '    {0, 0, 0, 0},' + chr(10)}}};\n"
        f"const CiStencil ci_stencils[] = {{\n{''.join(rows) or '    {0, 0, 0, 0, 0},' + chr(10)}}};\n"
        f"const int ci_stencil_count = {len(rows)};\n"
        f"const unsigned char ci_stencil_pool[] = {{\n{numbers(pool)}}};\n"
        f"const int ci_stencil_pool_bytes = {len(pool)};\n"
    )


def compiled(command):
    """The text of the tables; empty ones where the compiler refuses."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "stencils.o")
        done = subprocess.run([*command, "-o", str(made)], capture_output=True)
        try:
            return tables(*stencils(Object(made.read_bytes()))) if done.returncode == 0 else tables({}, b"")
        except ValueError:
            return tables({}, b"")


def main():
    output = Path(sys.argv[1])
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    command = [*compiler, "-x", "c", *LEVEL, *VALUES, *CODE, f"-I{CSRC}", "-c", str(SOURCE)]
    texts = [Path(__file__), *(CSRC / name for name in sorted(read(SOURCE, set())))]
    state = hashlib.sha256(b"\0".join([" ".join(command).encode(), *(path.read_bytes() for path in texts)]))
    first = f"/* {state.hexdigest()} */\n"
    if not output.is_file() or not output.read_text(encoding="utf-8").startswith(first):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(first + compiled(command), encoding="utf-8")


def read(path, known):
    """The files of csrc that a file is made of."""
    known.add(str(path.relative_to(CSRC)))
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
        if name not in known:
            read(CSRC / name, known)
    return known


main()
