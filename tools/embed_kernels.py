"""Writes the kernels of csrc/kernels/cuda as arrays of C, which the core contains, with expanded includes and without comments.

    python tools/embed_kernels.py OUTPUT.c
"""

import re
import sys
from pathlib import Path

CSRC = Path(__file__).parent.parent / "csrc"


def expanded(path, seen):
    """The text of a file with each file that it includes in place of the first `#include` of it."""
    if path in seen:
        return ""
    seen.add(path)
    text = path.read_text(encoding="utf-8")
    return re.sub(r'(?m)^#include "([^"]+)"\n', lambda match: expanded(CSRC / match[1], seen), text)


def without_comments(text):
    """The text without comments and empty lines."""
    lines = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).split("\n")
    return "".join(line.rstrip() + "\n" for line in lines if line.strip())


def array(path):
    """A string longer than 4095 characters is not portable C, so the text is an array of numbers."""
    numbers = ",".join(str(byte) for byte in without_comments(expanded(path, set())).encode() + b"\0")
    lines = re.sub(r"(.{1,100},)", r"    \1\n", numbers + ",")
    return f"const char ci_cuda_{path.stem}_text[] = {{\n{lines}}};\n"


def main():
    kernels = sorted((CSRC / "kernels" / "cuda").glob("*.cu"))
    text = '#include "kernels/cuda/texts.h"\n\n' + "".join(array(path) for path in kernels)
    output = Path(sys.argv[1])
    output.parent.mkdir(parents=True, exist_ok=True)
    if not output.is_file() or output.read_text(encoding="utf-8") != text:
        output.write_text(text, encoding="utf-8")


main()
