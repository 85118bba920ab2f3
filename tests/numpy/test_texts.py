"""Tests that an operation that NumPy or Python refuses raises its exception, with its text, in the first call and after effects.

Each operation runs with numbers and arrays of many classes, in functions with and without a `print` before it. A call
with an effect cannot run again in NumPy, so its exceptions are those that capture finds. A fixed sample of the pairs of
operands is tested; CINDUCTOR_FUZZ tests all.
"""

import copy
import importlib.util
import itertools
import re

import numpy as np
import pytest
from ways import EVERYTHING

import cinductor

OPERATIONS = """
a // b|a % b|a << b|a >> b|a & b|a ^ b|a @ b|a ** b|a < b|a <= b|a + b|a - b|divmod(a, b)|pow(a, b, 3)
-a|~a|abs(a)|round(a)|int(a)|float(a)|complex(a)|bool(a)|len(a)|list(a)|range(a)|b in a|a[b]|a(b)|[1, 2][a]|f'{a:d}'
a.nosuch|a.swapaxes(axis1=0)|a.item(a=1)|a.sum(foo=1)|a.reshape()|np.sum(a, foo=1)|np.add(a)|np.reshape(a, (5, 5))|np.maximum(a, 'x')
a //= b|a @= b|del a[0]|del a.nosuch|a.nosuch = 1|a[0] = 1
"""
LINES = [line for line in re.split(r"[|\n]", OPERATIONS) if line]
IS_STATEMENT = re.compile(r"del |.* [/@]*= ")
FIRST = [np.complex64(1 + 2j), np.float32(2.5), np.int8(3), np.bool_(True), 2, 2.5, 1j, np.arange(3.0), np.array(3), np.zeros((0, 2))]
SECOND = [2, 1j, np.complex64(2), np.arange(2.0), "s"]


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    text = "import numpy as np\n"
    for number, line in enumerate(LINES):
        body = f"    {line}\n    return a\n" if IS_STATEMENT.match(line) else f"    return {line}\n"
        text += f"\n\ndef plain{number}(a, b):\n{body}\n\ndef after{number}(a, b):\n    print(end='')\n{body}"
    path = tmp_path_factory.mktemp("texts") / "operations.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("operations_with_texts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(function, a, b):
    try:
        return repr(function(copy.copy(a), copy.copy(b)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(LINES)), ids=LINES)
def test_the_text_of_an_exception(functions, number):
    pairs = [*itertools.product(FIRST, SECOND)]
    for (a, b), when in itertools.product(pairs if EVERYTHING else pairs[number % 4 :: 4], ("plain", "after")):
        function = getattr(functions, f"{when}{number}")
        compiled, wanted = cinductor.compile(function, backend="interp"), answer(function, a, b)
        for call in range(2):
            assert answer(compiled, a, b) == wanted, (when, a, b, call)
