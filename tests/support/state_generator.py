"""Generates the source of random functions that use objects with hidden state: iterators, containers of the standard
library, objects whose classes have hooks, and every way to change them other than a plain statement.

A program takes such an object from an argument, a global, a default, a cell or an attribute of the function itself,
or makes it. It may also be reachable only without a name: through a default, an attribute of a function, an
exception, a view, or the iterable of a loop. A loop, a branch, an operand, a comprehension or a `try` uses the object, and its final state is part of
the result. Hooks record in a log that they ran.
"""

import functools
import random
import re

PRELUDE = '''
import array, bisect, collections, contextlib, copy, dataclasses, enum, functools, heapq, io, itertools, json, math, operator, random, types, weakref
import numpy as np

LOG = []


def taken(o, x):
    """Takes an array out of a list, and writes to it after a branch."""
    v = o.pop()
    o.append(x * 3)
    if x.sum() > 1.2:
        v = v * 2
    v += 1
    return v[0]


def looped(o, x):
    v = o.pop()
    o.append(x * 3)
    for k in range(4):
        if x[0] > 0.5:
            v = v * 2
        v += x[0]
    return v[0]


class Counter:
    """An iterator with an attribute."""

    def __init__(self, stop=40):
        self.k, self.stop = 0, stop

    def __iter__(self):
        return self

    def __next__(self):
        if self.k >= self.stop:
            raise StopIteration
        self.k += 1
        return float(self.k)


class Box:
    """A value with hooks of many kinds."""

    def __init__(self, value=1.0):
        self.value = value


class Index:
    def __init__(self, k):
        self.k = k

    def __index__(self):
        LOG.append("index")
        return self.k


class Sized:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        LOG.append("len")
        return len(self.items)

    def __getitem__(self, k):
        LOG.append(("getitem", k))
        return self.items[k]


class Iterable:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        LOG.append("iter")
        return iter(self.items)

    def __len__(self):
        LOG.append("len")
        return len(self.items)

    def __contains__(self, value):
        LOG.append("contains")
        return value in self.items


class Hinted:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        LOG.append("iter")
        return iter(self.items)

    def __length_hint__(self):
        LOG.append("hint")
        return len(self.items)


class Truth:
    def __init__(self, value):
        self.value = value

    def __bool__(self):
        LOG.append("bool")
        return self.value


class Equal:
    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        LOG.append("eq")
        return isinstance(other, Equal) and other.k == self.k

    def __hash__(self):
        LOG.append("hash")
        return hash(self.k)

    def __lt__(self, other):
        LOG.append("lt")
        return self.k < other.k


class Number:
    def __init__(self, k):
        self.k = k

    def __float__(self):
        LOG.append("float")
        return float(self.k)

    def __int__(self):
        LOG.append("int")
        return int(self.k)

    def __round__(self, *digits):
        LOG.append("round")
        return self.k

    def __abs__(self):
        LOG.append("abs")
        return abs(self.k)

    def __add__(self, other):
        LOG.append("add")
        return self.k + other

    def __format__(self, text):
        LOG.append("format")
        return "N"

    def __iadd__(self, other):
        LOG.append("iadd")
        self.k += 1
        return self


class Vector:
    """Operators that read an attribute of the other operand, and keep what they get."""

    def __init__(self, k):
        self.k = k

    def __add__(self, other):
        LOG.append("add")
        return Vector(self.k + getattr(other, "k", 1.0)) if not isinstance(other, list) else other

    def __radd__(self, other):
        LOG.append("radd")
        return self if not isinstance(other, list) else other

    def __mul__(self, other):
        LOG.append("mul")
        return Vector(self.k * other.k)

    def __neg__(self):
        LOG.append("neg")
        return Vector(-self.k)

    def __bool__(self):
        LOG.append("bool")
        return self.k > 1

    def __lt__(self, other):
        return self.k < other.k


def vectors(stop=3):
    for k in range(stop):
        LOG.append(k)
        yield Vector(k + 0.5)


class Asked(type):
    """A metaclass that is asked for what its class lacks."""

    def __getattr__(cls, name):
        LOG.append(("meta", name))
        raise AttributeError(name)


class Made(metaclass=Asked):
    def __init__(self, k=1.0):
        self.k = k

    def __call__(self, v):
        return v + self.k

    def __iter__(self):
        return iter((self.k, 2.0))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class Dying:
    def __del__(self):
        LOG.append("del")


class Watched:
    """Its death is noted by others."""


def watched():
    made = Watched()
    weakref.finalize(made, LOG.append, "gone")
    return made


def closing():
    try:
        yield 1.
        yield 2.
    finally:
        LOG.append("closed")


class Called:
    def __init__(self):
        self.calls = 0

    def __call__(self, v):
        self.calls += 1
        return v + self.calls


class Hooked:
    def __init__(self):
        self.__dict__["a"] = 1.0

    def __getattr__(self, name):
        LOG.append(("getattr", name))
        return 2.0

    def __setattr__(self, name, value):
        LOG.append(("setattr", name))
        self.__dict__[name] = value

    def __setitem__(self, key, value):
        LOG.append(("setitem", key))

    def __delitem__(self, key):
        LOG.append(("delitem", key))


class Property:
    def __init__(self):
        self._v = 1.0

    @property
    def v(self):
        LOG.append("get v")
        return self._v

    @v.setter
    def v(self, value):
        LOG.append("set v")
        self._v = value


class Slotted:
    __slots__ = ("v",)

    def __init__(self):
        self.v = 1.0


class Entered:
    def __enter__(self):
        LOG.append("enter")
        return self

    def __exit__(self, *error):
        LOG.append("exit")
        return False


@dataclasses.dataclass
class Data:
    v: float = 1.0
    items: list = dataclasses.field(default_factory=list)


class Items(list):
    pass


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def numbers(stop=40):
    for k in range(stop):
        yield k + 0.5


@contextlib.contextmanager
def noted(box):
    box.value += 1
    yield box
    box.value += 2


@functools.lru_cache(maxsize=4)
def remembered(k):
    LOG.append(("computed", k))
    return k * 2.0


def grown(x):
    """A list whose length data decide."""
    o = [3., 1.]
    for v in x:
        if v > 0.5:
            o.append(v)
    return o


def kept(x):
    """The same of numbers of one kind: buffers, until somebody looks at it."""
    o = []
    for v in x:
        if v > 0.3:
            o.append(v)
    return o


def trail(x):
    """Python's number first, NumPy's then."""
    o, s = [], 0.
    for v in x:
        o.append(s)
        s += v
    return o


def bumper():
    """A function that changes a cell."""
    k = 0.

    def bump(by=1.):
        nonlocal k
        k += by
        return k

    return bump


def bare():
    """A function with an attribute."""

    def f():
        return f.n

    f.n = 1.0
    return f


def counted(f):
    """A decorator that counts calls."""

    @functools.wraps(f)
    def wrapped(*args):
        wrapped.calls += 1
        return f(*args) + wrapped.calls

    wrapped.calls = 0
    return wrapped


def around(o):
    """A function that alone has its argument."""
    return lambda: o


def forever(o):
    """A generator in whose frame alone its argument is."""
    while True:
        yield o


def left(it):
    """What is left of an iterator."""
    return list(itertools.islice(it, 6))
'''

# Expressions that make an iterator over floats.
ITERATORS = [
    "iter([1., 2., 3., 4., 5., 6., 7., 8., 9.])",
    "iter((1., 2., 3., 4., 5., 6., 7., 8.))",
    "iter(range(30))",
    "iter({1.: 2, 3.: 4, 5.: 6})",
    "iter({5.: 2, 3.: 4}.values())",
    "iter({4.})",
    "iter(x)",
    "x.flat",
    "(x * 2)[::-1].flat",
    "iter(x.tolist())",
    "reversed([1., 2., 3., 4., 5., 6.])",
    "(v + 0.25 for v in range(40))",
    "(v + 0.25 for v in x)",
    "numbers()",
    "Counter()",
    "iter(Counter())",
    "map(float, range(40))",
    "map(lambda v: v + 1, [1., 2., 3., 4., 5., 6., 7.])",
    "filter(lambda v: v > 1, [1., 2., 3., 4., 5., 6., 7.])",
    "itertools.count(1.5)",
    "itertools.cycle([1., 2., 3.])",
    "itertools.repeat(2.5)",
    "itertools.repeat(2.5, 4)",
    "itertools.chain([1., 2.], [3., 4., 5.], range(9))",
    "itertools.chain.from_iterable([[1., 2.], [3., 4., 5.]])",
    "itertools.islice(itertools.count(), 20)",
    "itertools.accumulate([1., 2., 3., 4., 5., 6.])",
    "itertools.starmap(max, [(1., 2.), (3., 1.), (0., 5.)])",
    "itertools.takewhile(lambda v: v < 8, itertools.count(2.))",
    "itertools.dropwhile(lambda v: v < 3, itertools.count(2.))",
    "itertools.filterfalse(lambda v: v < 3, itertools.count(2.))",
    "itertools.compress([1., 2., 3., 4.], [1, 0, 1, 1])",
    "itertools.tee([1., 2., 3., 4., 5.])[0]",
    "iter(collections.deque([1., 2., 3., 4.]))",
    "iter(memoryview(b'abcdefghij'))",
    "iter(bytearray(b'abcdefghij'))",
    "iter(b'abcdefghij')",
    "iter(np.ones(5) * x[0])",
    "iter(Sized([1., 2., 3., 4., 5.]))",
    "iter(lambda c=Counter(): next(c), 9.)",
]
# Iterators that never end, and expressions that exhaust an iterator in C code, which no signal can stop. These are not
# combined.
ENDLESS = frozenset(f"itertools.{m}" for m in (
    "count(1.5)", "cycle([1., 2., 3.])", "repeat(2.5)", "dropwhile(lambda v: v < 3, itertools.count(2.))",
    "filterfalse(lambda v: v < 3, itertools.count(2.))",
))
DRAINS = frozenset((
    "float(3. in it)", "float(operator.contains(it, 2.))", "operator.indexOf(it, 3.)", "operator.countOf(it, 2.)", "sum(it)",
    "len(list(it))", "len(tuple(it))", "sorted(it)[0]", "min(it)", "float(any(v > 2 for v in it))",
    "float(all(map(lambda v: v < 3, it)))", "for v in it:\n    s += v\n    if v > 3:\n        break",
))
# Expressions that make an iterator over tuples.
PAIRS = [
    "enumerate([1., 2., 3., 4., 5.])",
    "enumerate(x)",
    "zip([1., 2., 3., 4.], [5., 6., 7., 8.])",
    "zip(x, x[1:])",
    "iter({1.: 2., 3.: 4., 5.: 6.}.items())",
    "itertools.pairwise([1., 2., 3., 4., 5.])",
    "itertools.product([1., 2., 3.], [4., 5.])",
    "itertools.permutations([1., 2., 3.], 2)",
    "itertools.combinations([1., 2., 3., 4.], 2)",
    "itertools.zip_longest([1., 2., 3.], [4.], fillvalue=0.)",
    "np.ndenumerate(np.ones(4))",
]
USE_ITERATOR = [
    "next(it)",
    "sum(next(it) + v for v in x)",
    "next(it)",
    "next(it, 7.0)",
    "it.__next__()",
    "float(3. in it)",
    "float(operator.contains(it, 2.))",
    "sum(itertools.islice(it, 2))",
    "max(itertools.islice(it, 2), default=0.)",
    "[*itertools.islice(it, 2)][-1]",
    "list(zip(it, [1]))[0][0]",
    "list(zip([1], it))[0][1]",
    "operator.length_hint(it)",
    "operator.indexOf(it, 3.)",
    "operator.countOf(it, 2.)",
    "sum(it)",
    "len(list(it))",
    "len(tuple(it))",
    "sorted(it)[0]",
    "min(it)",
    "float(any(v > 2 for v in it))",
    "float(all(map(lambda v: v < 3, it)))",
    "functools.reduce(operator.add, itertools.islice(it, 2))",
    "len(dict.fromkeys(itertools.islice(it, 2)))",
    "(lambda a, *b: a)(*itertools.islice(it, 2))",
    "next(enumerate(it))[1]",
    "next(map(abs, it))",
    "next(filter(None, it))",
    "next(iter(it))",
    "next(copy.copy(it))",
    "float(iter(it) is it)",
    "math.fsum(itertools.islice(it, 2))",
    "math.prod(itertools.islice(it, 2))",
    "np.fromiter(itertools.islice(it, 2), float).sum()",
    "next(itertools.chain([], it))",
]
STATEMENTS_ITERATOR = [
    "a, b = next(it), next(it)\ns += a - b",
    "for v in it:\n    s += v\n    if v > 3:\n        break",
    "for v in it:\n    s += v\n    break",
    "a, *b = itertools.islice(it, 3)\ns += a",
    "try:\n    s += next(it)\nexcept StopIteration:\n    s -= 1",
    "try:\n    s += sum(next(it) + v for v in range(9))\nexcept StopIteration:\n    s -= 1\nexcept RuntimeError:\n    s -= 2",
    "for v, w in zip(it, x):\n    s += v * w",
    "for w, v in zip(x, it):\n    s += v * w",
]
# Objects that change: expressions that make them, expressions that change them and give a number, and their final
# state.
OBJECTS = [
    ("[3., 1., 2.]", [
        "o.append(s) or s", "o.pop() if o else 0.", "o.insert(0, 2.) or 1.", "o.extend([1., 2.]) or 1.", "o.reverse() or o[0]",
        "o.sort() or o[0]", "o.remove(o[0]) or 1.", "o.clear() or 2.", "operator.setitem(o, 0, 5.) or o[0]",
        "operator.delitem(o, 0) or 1.", "len(operator.iconcat(o, [1.]))", "len(operator.iadd(o, [1., 2.]))", "len(operator.imul(o, 2))",
        "o.__setitem__(0, 4.) or o[0]", "o.__delitem__(0) or 1.", "len(o.__iadd__([2.]))", "heapq.heappush(o, 0.5) or o[0]",
        "heapq.heappop(o)", "bisect.insort(o, 1.5) or o[0]", "list.append(o, 2.) or 1.", "list.pop(o)", "len(o.copy())", "o.index(o[-1])",
        "o.count(1.)", "operator.itemgetter(0)(o)", "operator.methodcaller('append', 4.)(o) or 1.", "operator.methodcaller('pop')(o)",
        "len(copy.copy(o))", "functools.partial(o.append, 3.)() or 1.", "operator.call(o.pop) if hasattr(operator, 'call') else 1.",
        "list(map(o.append, [1.])) and 1.", "random.Random(3).shuffle(o) or o[0]", "o.__init__([1., 7.]) or o[0]",
    ], ["o[0] = s", "del o[0]", "o += [1.]", "o *= 2", "o[:] = [4., 5.]", "o[1:2] = []", "o[0], o[-1] = o[-1], o[0]", "p = o\np.append(1.)",
        "for q in [o]:\n    q.append(2.)", "[o.append(v) for v in range(2)]", "(o2 := o).append(3.)", "o[0] += 1"], "(list(o), len(o))"),
    ("{'a': 1., 'b': 2.}", [
        "o.pop('a', 5.)", "o.setdefault('c', s)", "o.update(a=3.) or 1.", "o.popitem()[1] if o else 0.", "o.clear() or 1.",
        "o.get('a', 0.)", "operator.setitem(o, 'a', 5.) or o['a']", "operator.delitem(o, 'b') or 1.", "len(operator.ior(o, {'z': 1}))",
        "o.__setitem__('k', 4.) or o['k']", "o.__delitem__('a') or 1.", "dict.update(o, q=2.) or 1.", "dict.pop(o, 'a', 1.)",
        "len(o.keys())", "sum(o.values())", "len(o | {'u': 3.})", "operator.itemgetter('a')(o)", "len(dict(o, y=1.))", "len({**o})",
        "o.__ior__({'v': 9}) is o and 1.", "o.update([('m', 1.)]) or 1.", "operator.methodcaller('popitem')(o)[1]",
    ], ["o['a'] = s", "del o['a']", "o |= {'w': 1.}", "o['n'] = o.get('n', 0.) + 1", "o.update({'e': s})", "for k in list(o):\n    o[k] += 1",
        "for k in o:\n    if x[1] > s:\n        o[k] = s", "for k in o:\n    s += 1\n    if x[1] * 9 > s:\n        o['zz'] = s\n        break", "for k, v in o.items():\n    if s > 0:\n        o[k] = v + s\n    s += 1",
        "o[1] = o.pop(1., s)", "o[1.] = o.pop(1, s)"],
     "(list(o.items()), len(o))"),
    ("{1, 2, 3}", [
        "o.add(len(o) + 5) or 1.", "o.discard(1) or 1.", "o.pop() if o else 0", "o.update([7, 8]) or 1.", "o.clear() or 1.",
        "len(operator.ior(o, {11}))", "len(operator.iand(o, {1, 2}))", "len(operator.isub(o, {1}))", "len(operator.ixor(o, {1}))",
        "o.remove(2) or 1.", "o.symmetric_difference_update({1, 9}) or 1.", "o.intersection_update({1, 9}) or 1.",
        "o.difference_update({1, 9}) or 1.", "len(o - {1})", "float(2 in o)", "set.add(o, 20) or 1.", "o.__ior__({77}) is o and 1.",
    ], ["o |= {9}", "o -= {1}", "o &= {1, 2}", "o ^= {1, 12}"], "(sorted(o), len(o))"),
    ("collections.deque([1., 2., 3.], maxlen=5)", [
        "o.append(s) or 1.", "o.appendleft(s) or 1.", "o.pop()", "o.popleft()", "o.rotate(1) or o[0]", "o.extend([1., 2.]) or 1.",
        "o.extendleft([1.]) or 1.", "o.clear() or 1.", "o.insert(1, 9.) or 1.", "o.remove(2.) or 1.", "o.reverse() or o[0]", "len(o)", "o[0]",
        "o.count(1.)", "o.index(3.)", "len(operator.iadd(o, [4.]))", "operator.setitem(o, 0, 8.) or o[0]", "float(2. in o)", "sum(o)",
    ], ["o += [5.]", "o[0] = s", "del o[0]", "o *= 2", "for v in o:\n    s += v\n    if x[1] * 9 > s:\n        o.appendleft(v)\n        break"],
     "(list(o), len(o))"),
    ("collections.Counter('abca')", [
        "o.update('ab') or 1.", "o.subtract('a') or 1.", "o['a']", "o['zz']", "len(o.most_common(1))", "o.total()", "o.pop('a')",
        "len(o + o)", "len(+o)", "operator.setitem(o, 'a', 5) or o['a']",
    ], ["o['a'] += 1", "o += collections.Counter('b')", "del o['a']", "o -= collections.Counter('a')"], "sorted(o.items())"),
    ("collections.defaultdict(list)", [
        "len(o['a'])", "o['a'].append(s) or 1.", "len(o.setdefault('q', []))", "len(o)", "o.get('b') or 2.",
        "len(o[len(o)])", "operator.getitem(o, 'x9') or 1.", "o.__missing__('k2') or 1.",
    ], ["o['z'] = [s]", "o['a'] += [1.]"], "sorted((str(k), list(v)) for k, v in o.items())"),
    ("collections.OrderedDict(a=1., b=2.)", [
        "o.move_to_end('a') or 1.", "o.popitem(last=False)[1]", "o.pop('a', 3.)", "o.setdefault('u', 1.)", "next(iter(o)) == 'a'",
        "next(reversed(o.values()))", "o.update(k=3.) or 1.", "o.move_to_end(next(iter(o))) or 1.", "o.copy().popitem()[1]",
        "len(collections.OrderedDict(o, q=s))", "float(o == dict(o))", "list(dict.items(o))[0][1]",
    ], ["o['a'] = s", "o['c'] = s", "del o['b']", "o |= {'w': 1.}", "for k in o:\n    if x[1] > s:\n        o[k] = s", "for k in o:\n    s += 1\n    if x[1] * 9 > s:\n        o['zz'] = s\n        break",
        "for k, v in o.items():\n    if s > 0:\n        o[k] = v + s\n    s += 1"], "(list(o.items()), list(dict.items(o)))"),
    ("collections.ChainMap({'a': 1.}, {'b': 2.})", [
        "o['b']", "o.pop('a', 1.)", "operator.setitem(o, 'q', 1.) or 1.", "len(o.new_child().maps)", "o.maps[0].clear() or 1.",
    ], ["o['b'] = s", "del o['a']"], "(o.maps, len(o))"),
    ("collections.UserList([1., 2., 3.])", ["o.append(s) or 1.", "o.pop()", "len(o)", "o[0]"], ["o[0] = s", "o += [1.]", "del o[0]"], "list(o)"),
    ("bytearray(b'abc')", [
        "float(np.frombuffer(o, 'u1').sum())", "np.frombuffer(o, 'u1')[0] + (o.append(3) or 1.)", "memoryview(o)[0]",
        "o.append(65) or 1.", "o.pop()", "o[0]", "o.extend(b'xy') or 1.", "o.reverse() or o[0]", "len(o)", "o.find(b'b')",
        "operator.setitem(o, 0, 66) or 1.", "len(operator.iconcat(o, b'z'))", "bytes(o)[-1]", "float(np.array(o)[0])",
    ], ["o[0] = 70", "o += b'q'", "del o[0]", "o[0] = int(s) % 256", "for v in o:\n    if x[1] > s:\n        o[0] = 71"], "bytes(o)"),
    ("array.array('d', [1., 2., 3.])", [
        "o.append(4.) or 1.", "o.append(s) or 1.", "o.pop()", "o[0]", "o[1:][0]", "o.extend([5., 6.]) or 1.", "o.insert(0, 7.) or 1.", "o.reverse() or o[0]",
        "o.index(o[-1])", "len(o)", "sum(o)", "operator.setitem(o, 0, 66.) or 1.", "float(np.array(o)[0])", "o.tolist()[0]",
        "len(o + o)", "float(2. in o)", "operator.itemgetter(0)(o)", "o.fromlist([1.]) or 1.", "o.__setitem__(0, 3.) or o[0]",
    ], ["o[0] = 70.", "o[0] = s", "o += o", "del o[0]", "o *= 2", "for v in o:\n    if x[1] > s:\n        o[0] = 71."],
     "(o.tolist(), len(o))"),
    ("types.SimpleNamespace(v=1., w=[])", [
        "o.__dict__.update(v=4.) or o.v", "setattr(o, 'v', 5.) or o.v", "object.__setattr__(o, 'v', 6.) or o.v", "o.__setattr__('v', 8.) or o.v",
        "operator.attrgetter('v')(o)", "o.w.append(s) or 1.", "o.__dict__.setdefault('n', 3.)", "o.__dict__.pop('v', 2.)", "delattr(o, 'w') or 1.",
        "getattr(o, 'nothing', 3.)", "float(hasattr(o, 'v'))", "len(o.__dict__)", "operator.setitem(o.__dict__, 'v', 9.) or o.v",
    ], ["o.v = s", "o.v += 1", "del o.v", "o.__dict__['v'] = 9.", "o.new = s", "o.w += [1.]", "o.__dict__ = {'v': 3., 'w': []}", "o.__dict__ |= {'v': 2.}"],
     "sorted(o.__dict__.items(), key=lambda p: p[0])"),
    ("Box(2.)", [
        "setattr(o, 'value', 5.) or o.value", "o.__dict__.update(value=4.) or o.value", "object.__setattr__(o, 'value', 6.) or o.value",
        "o.__setattr__('value', 6.) or o.value", "Box.__setattr__(o, 'value', 7.) or o.value", "o.__init__(9.) or o.value",
        "len(o.__dict__)", "operator.attrgetter('value')(o)", "copy.copy(o).value", "o.__dict__.pop('value', 1.)", "o.__delattr__('value') or 1.",
        "noted(o).__enter__().value", "len(o.__dict__.copy())", "o.__reduce_ex__(2) and 1.", "o.__dict__.__setitem__('value', 3.) or o.value",
        "setattr(Box, 'shared', getattr(Box, 'shared', 0) + 1) or 1.", "Called.__call__(o, 1.)",
    ], ["o.value = s", "o.value += 1", "del o.value", "o.__dict__['value'] = 3.", "o.__class__ = Called", "o.calls = 0", "with noted(o) as b:\n    s += b.value",
        "o.value, o.other = 1., 2."], "sorted(o.__dict__.items(), key=lambda p: p[0])"),
    ("Called()", ["o(s)", "o.__call__(2.)", "list(map(o, [1., 2.]))[1]", "functools.partial(o, 3.)()", "Called.__call__(o, 1.)",
                  "functools.reduce(lambda a, b: o(a), [1., 2., 3.])", "sorted([3., 1.], key=o)[0]", "max([1., 2.], key=o)"], ["o.calls = 0", "s = o(s)"], "o.calls"),
    ("Property()", ["o.v", "setattr(o, 'v', 3.) or o.v", "operator.attrgetter('v')(o)", "Property.v.fget(o)", "Property.v.__get__(o)",
                    "Property.v.__set__(o, 4.) or o.v", "Property.v.fset(o, 5.) or 1."], ["o.v = s", "o.v += 1"], "o._v"),
    ("Slotted()", ["o.v", "setattr(o, 'v', 3.) or o.v", "Slotted.v.__set__(o, 4.) or o.v", "object.__setattr__(o, 'v', 6.) or o.v"],
     ["o.v = s", "o.v += 1"], "o.v"),
    ("Hooked()", ["o.a", "o.b", "setattr(o, 'b', 3.) or o.b", "operator.setitem(o, 1, 2.) or 1.", "operator.delitem(o, 1) or 1.", "getattr(o, 'zz')",
                  "float(hasattr(o, 'q'))"], ["o.a = s", "o.c = s", "o[1] = s", "del o[2]"], "sorted(o.__dict__.items(), key=lambda p: p[0])"),
    ("Data(2.)", ["o.items.append(s) or 1.", "setattr(o, 'v', 5.) or o.v", "dataclasses.replace(o, v=3.).v", "len(dataclasses.asdict(o))",
                  "float(o == Data(2.))", "len(repr(o))", "dataclasses.astuple(o)[0]", "len(dataclasses.fields(o))"], ["o.v = s", "o.items += [1.]", "o.v += 1"],
     "(o.v, list(o.items))"),
    ("Items([1., 2., 3.])", ["o.append(s) or 1.", "o.pop()", "len(o)", "o[0]", "sum(o)", "operator.setitem(o, 0, 3.) or 1.", "o.sort() or o[0]"],
     ["o[0] = s", "o += [1.]", "o.note = s", "del o[0]"], "(list(o), o.__dict__)"),
    ("random.Random(5)", ["o.random()", "o.choice([1., 2., 3.])", "o.getrandbits(4)", "o.uniform(0, 2)", "o.seed(3) or 1.", "o.randint(0, 9)"],
     ["s += o.random()"], "o.random()"),
    ("np.random.default_rng(5)", ["o.random()", "o.integers(9)", "o.normal()", "o.bit_generator.random_raw() % 7", "o.choice([1., 2.])",
                                     "o.shuffle([1, 2, 3]) or 1.", "o.spawn(1)[0].random()", "float(o.bit_generator.state['has_uint32'])", "float(copy.deepcopy(o).random())"],
     ["s += o.random()", "state = o.bit_generator.state\ns += o.random()\no.bit_generator.state = state", "items = [1., 2., 3.]\no.shuffle(items)\ns += items[0]",
      "bits = o.bit_generator\ns += o.random() + bits.random_raw() % 7"], "o.random()"),
    ("io.StringIO()", ["o.write('ab')", "o.tell()", "len(o.getvalue())", "o.seek(0)", "o.truncate(1)"], ["o.write('x')"], "o.getvalue()"),
    ("functools.partial(max, 1.)", ["o(s)", "o(2., 5.)", "operator.setitem(o.keywords, 'default', 1) or 1."], ["s = o(s)"], "(o.args, o.keywords)"),
    ("contextlib.ExitStack()", ["o.callback(LOG.append, 'closed') and 1.", "o.close() or 1.", "o.__enter__() is o and 1."], ["with o:\n    s += 1"],
     "len(LOG)"),
    ("ValueError('a')", ["len(o.args)", "o.__setstate__({'k': 2}) or 1.", "o.with_traceback(None) is o and 1.", "setattr(o, 'args', (1, 2)) or 1.",
                         "o.__setattr__('k', 3) or 1."], ["o.args = (3,)", "o.k = s"], "(o.args, sorted(o.__dict__))"),
    ("iter(np.nditer(np.arange(4.)))", ["float(next(o))", "o.iterindex"], ["s += float(next(o))"], "1"),
    ("types.MappingProxyType({'a': 1.})", ["o['a']", "len(o)", "o.get('b', 2.)"], ["s += o['a']"], "dict(o)"),
    ("memoryview(bytearray(b'abc'))", ["o[0]", "operator.setitem(o, 0, 66) or 1.", "len(o)", "o.release() or 1."], ["o[0] = 70"], "1"),
    ("[[1.], [2.]]", ["o[0].append(s) or 1.", "o[1].pop()", "operator.setitem(o[0], 0, 3.) or 1.", "o[0].__iadd__([1.]) is o[0] and 1.",
                      "len(sum(o, []))", "copy.copy(o)[0].append(1.) or 1.", "list(map(list.pop, o)) and 1."],
     ["o[0][0] = s", "o[0] += [1.]", "o[0], o[1] = o[1], o[0]", "p = o[0]\np += [4.]", "for q in o:\n    q.append(1.)"], "[list(q) for q in o]"),
    ("x.copy()", ["o.sort() or o[0]", "o.fill(2.) or o[0]", "o.put([0], 5.) or o[0]", "np.copyto(o, 3.) or o[0]", "np.put(o, [0], 4.) or o[0]",
                  "operator.setitem(o, 0, 5.) or o[0]", "operator.iadd(o, 1.)[0]", "np.add(o, 1., out=o)[0]", "np.place(o, o > .5, [7.]) or o[0]",
                  "np.putmask(o, o > .5, 3.) or o[0]", "o.__setitem__(0, 4.) or o[0]", "o.__iadd__(1.)[0]", "np.fill_diagonal(o[:1].reshape(1, 1), 6.) or o[0]",
                  "o.resize(o.size) or o[0]", "np.random.default_rng(3).shuffle(o) or o[0]", "o.partition(0) or o[0]", "o.itemset(0, 3.) if hasattr(o, 'itemset') else 1.",
                  "o.byteswap(inplace=True)[0] * 0", "setattr(o, 'shape', (-1, 1)) or o.ndim", "o.setflags(write=True) or 1."],
     ["o[0] = s", "o += 1", "o.shape = (-1, 1)", "o.shape = (1, -1)", "o[:] = s", "o.flat[0] = s", "o.real = 2.", "o = o[::-1]", "o.dtype = np.int64",
      "o.strides = o.strides", "v = o[1:]\nv.shape = (-1, 1)", "o.T.shape = (o.size,)"], "o"),
]
# Objects whose hooks write to a log.
HOOKS = [
    ("Index(1)", ["range(10)[o]", "[1., 2., 3.][o]", "x[o]", "(4., 5., 6.)[o]", "x[o:].sum()", "[1., 2., 3.][o:][0]", "operator.index(o)", "np.zeros(3)[o]",
                  "range(o)[0]", "np.arange(o)[0]", "round(1.234, o)", "hex(o) and 1.", "bin(o) and 1.", "chr(o) and 1.", "x.reshape(-1, o).sum()",
                  "list(range(5))[-o]", "'abc'[o] and 1.", "b'abc'[o]", "[1.] * o and 1.", "x.sum(axis=0 * operator.index(o))", "np.ones(o).sum()",
                  "x[[0, o]].sum()", "divmod(7, operator.index(o))[0]", "math.factorial(o)", "x.take(o)", "math.gcd(o, 4)", "(1.).__round__(o)"]),
    ("Sized([1., 2., 3.])", ["len(o)", "o[0]", "list(o)[0]", "sum(o)", "float(2. in o)", "float(bool(o))", "max(o)", "np.array(o).sum()", "tuple(o)[1]",
                             "[*o][0]", "next(reversed(o))", "(1. if o else 2.)", "x[o].sum() if 0 else 1.", "len(sorted(o))", "o[0:2][0]", "operator.getitem(o, 1)",
                             "operator.length_hint(o)", "list(zip(o, x))[0][0]", "list(enumerate(o))[0][1]", "math.fsum(o)", "float(not o)"]),
    ("Iterable([1., 2., 3.])", ["list(o)[0]", "tuple(o)[0]", "sum(o)", "max(o)", "sorted(o)[0]", "[*o][0]", "len(o)", "float(2. in o)", "float(4. not in o)",
                                "dict.fromkeys(o) and 1.", "set(o) and 1.", "float(any(v > 1 for v in o))", "(lambda *a: a[0])(*o)", "next(iter(o))", "math.prod(o)",
                                "list(map(float, o))[0]", "list(zip(o, o))[0][0]", "functools.reduce(max, o)", "np.fromiter(o, float)[0]", "[0., *o, 1.][1]",
                                "[].extend(o) or 1.", "(1. if o else 2.)", "float(operator.contains(o, 2.))", "operator.countOf(o, 2.)", "frozenset(o) and 1.",
                                "list(itertools.chain(o, o))[0]", "collections.deque(o)[0]", "min(o, default=0.)", "{*o} and 1.", "float(all(o))",
                                "len([v for v in o])", "len({v: 1 for v in o})"]),
    ("Hinted([1., 2., 3.])", ["list(o)[0]", "tuple(o)[0]", "sum(o)", "sorted(o)[0]", "[*o][0]", "operator.length_hint(o)", "len([0., *o])", "[].extend(o) or 1.",
                              "list(map(float, o))[0]", "(lambda *a: a[0])(*o)", "collections.deque(o)[0]", "len([v for v in o])", "np.fromiter(o, float)[0]"]),
    ("Truth(True)", ["(1. if o else 2.)", "float(bool(o))", "float(not o)", "(o and 1.) or 0.", "float(any([o]))", "float(all([o, o]))", "1. * (not o)",
                     "len(list(filter(None, [o])))", "float(operator.truth(o))", "float(operator.not_(o))", "len([v for v in [o] if v])", "float(o is not None)"]),
    ("Equal(1)", ["float(o == Equal(1))", "float(o != Equal(2))", "{o: 1.}[o]", "{Equal(1): 2.}[o]", "float(o in [Equal(1)])", "[Equal(1)].index(o)", "hash(o) * 1.",
                  "len({o, Equal(1)})", "float(o < Equal(2))", "sorted([Equal(2), o])[0].k", "min(o, Equal(0)).k", "[Equal(1)].count(o)", "float((o,) == (Equal(1),))",
                  "float([o] == [Equal(1)])", "dict.fromkeys([o]).get(o) or 1.", "float(operator.eq(o, 1))", "max([o, Equal(3)]).k", "float(o in (Equal(1),))",
                  "float(o in {Equal(1)})", "float({o: 1} == {Equal(1): 1})", "functools.reduce(max, [o, Equal(4)]).k", "bisect.bisect([Equal(0), Equal(3)], o)",
                  "float(o == o)", "float(o is o)", "[o].remove(o) or 1.", "float(o not in [3])", "heapq.nsmallest(1, [o, Equal(0)])[0].k", "float((1, o) < (1, Equal(3)))",
                  "len(set([o]) | {Equal(1)})", "frozenset([o]) and 1.", "{o: 1.}.get(Equal(1), 3.)"]),
    ("Number(2)", ["float(o)", "int(o)", "round(o)", "abs(o)", "o + s", "len(f'{o}')", "len(f'{o:>3}')", "len(format(o))", "np.float64(o)", "math.sqrt(o)", "math.floor(float(o))",
                   "len('{}'.format(o))", "round(o, 1)", "operator.abs(o)", "operator.add(o, 1.)", "math.isfinite(o)", "len('%s' % (o,)) and 1.", "np.array([float(o)])[0]",
                   "complex(float(o)).real", "sum([o], 0.0) if 0 else 1.", "math.hypot(o, 1.)", "pow(int(o), 2)", "len(str(o)) and 1.", "len(repr(o)) and 1."]),
    ("Vector(x.sum())", ["sum([o, o], Vector(1.)).k", "sum([o, o, o]).k", "sum(vectors(), o).k", "sum(vectors()).k", "sum(a * b for a, b in zip(vectors(), [o, o])).k",
                         "math.prod([o, o], start=o).k", "[*itertools.accumulate(vectors())][-1].k", "functools.reduce(operator.add, vectors(), o).k",
                         "(o + o).k", "(o * o + o).k", "(-o + o * -o).k", "float((o + o) * o < o)", "1. if o * o else 2.", "sum(-v + o for v in vectors()).k", "sum(map(operator.add, vectors(), [o, o])).k", "float(([s] + o)[0])", "float((o + [s, 1.])[1])", "max(vectors()).k", "sorted([o, Vector(2.)])[0].k"]),
    ("Made()", ["o(s)", "sum(o)", "[*map(o, [1., 2.])][0]", "len([o, o])", "float(o is None)", "sorted([3., 1.], key=o)[0]", "float(o in [1., o])", "o.k",
                "float(isinstance(o, Made))", "float(hasattr(Made, 'nothing'))", "Made(2.).k", "float(callable(o))", "next(iter(o))", "len({o: 1.})"]),
    ("Dying()", ["1.", "float(o is None)", "float(Dying() is None)", "len([Dying(), Dying()])", "[Dying()].pop() and 1.", "{1: Dying()}.pop(1) and 1.",
                 "(lambda: (Dying(), 2.))()[1]"]),
    ("watched()", ["1.", "float(watched() is o)", "len([watched(), watched()])", "[watched()].pop() and 1.", "{1: watched()}.pop(1) and 1.",
                   "(lambda: (watched(), 2.))()[1]", "next(closing())", "sum(closing())", "[v for v, _ in zip(closing(), [1])][0]", "[*closing()][1]"]),
    ("Entered()", ["o.__enter__() and 1.", "o.__exit__() or 1.", "contextlib.nullcontext(2.).__enter__()"]),
    ("Colour.RED", ["o.value", "float(o is Colour.RED)", "float(o == Colour.BLUE)", "len(o.name)", "Colour(2).value", "Colour['BLUE'].value", "len(list(Colour))",
                    "float(o in Colour)", "hash(o) and 1."]),
    ("remembered", ["o(1)", "o(3)", "o.cache_info().hits", "o.cache_clear() or 1.", "remembered(2) + o(2)", "o.__wrapped__(2)"]),
]
CONSTRUCTS = [
    ("straight", "s += {e}\n"),
    ("for arms", "for i in range(n):\n    if x[i] > 0.5:\n        s += {e}\n    else:\n        s += 0.5\n"),
    ("for other arm", "for i in range(n):\n    if x[i] > 0.5:\n        s -= 0.25\n    else:\n        s += {e}\n"),
    ("for", "for i in range(n):\n    s += {e} * x[i]\n"),
    ("for rows", "for v in x:\n    s += v\n    t = {e}\n"),
    ("short for", "for i in range(3):\n    s += {e}\n"),
    ("long for", "for i in range(12):\n    s += {e} * x[0]\n"),
    ("if", "if x.sum() > 1.2:\n    s += {e}\nelse:\n    s -= 2\n"),
    ("if without else", "if x[0] > 0.3:\n    s += {e}\n"),
    ("both arms", "if x[0] > 0.5:\n    s += {e}\nelse:\n    s -= {f}\n"),
    ("elif", "if x[0] > 0.7:\n    s += 1\nelif x[0] > 0.3:\n    s += {e}\nelse:\n    s += {f}\n"),
    ("while", "k = 0\nwhile k < n and s < 30:\n    s += {e} + x[k]\n    k += 1\n"),
    ("while on data", "while s < x.sum() + 3:\n    s += 1 + abs({e})\n"),
    ("known while", "k = 0\nwhile k < 6:\n    s += {e} * x[0]\n    k += 1\n"),
    ("test of while", "k = 0\nwhile k < n and {e} < 3:\n    s += x[k]\n    k += 1\n"),
    ("conditional", "s += ({e} if x[0] > 0.5 else 1.0)\n"),
    ("other operand", "s += (1.0 if x[0] > 0.5 else {e})\n"),
    ("both operands", "s += ({f} if x[0] > 0.5 else {e})\n"),
    ("and", "if x[0] > 0.5 and {e} > 1:\n    s += 1\n"),
    ("or", "ok = x[0] > 0.5 or {e} > 1\ns += 1 if ok else 2\n"),
    ("comprehension", "s += sum([{e} * x[0] for i in range(4)])\n"),
    ("generator", "s += sum({e} + v for v in x)\n"),
    ("nested", "for i in range(n):\n    for j in range(3):\n        if x[i] > 0.4:\n            s += {e}\n        s += x[j] if j < n else 0\n"),
    ("break", "for i in range(n):\n    s += {e}\n    if x[i] > 0.8:\n        break\n"),
    ("continue", "for i in range(n):\n    if x[i] > 0.8:\n        continue\n    s += {e}\n"),
    ("try", "for i in range(n):\n    try:\n        s += {e} * x[i]\n    except (StopIteration, IndexError, KeyError, ValueError):\n        s -= 1\n"),
    ("try outside", "try:\n    for i in range(4):\n        s += {e} * x[0]\nexcept (StopIteration, IndexError, KeyError, ValueError):\n    s -= 1\n"),
    ("function", "def inner(v):\n    return v + {e}\nfor i in range(n):\n    s = inner(s) + x[i]\n"),
    ("function in arms", "def inner(v):\n    return v + {e}\nif x[0] > 0.4:\n    s = inner(s)\nelse:\n    s = inner(s) - 1\n"),
    ("extreme", "s += max({e}, x[0])\n"),
    ("index", "s += x[int(abs({e})) % n]\n"),
    ("behind", "y = x * 2\nt = {e}\ny[0] = t\ns += y.sum()\n"),
    ("raise", "if x[0] > 5:\n    raise ValueError({e})\ns += {e}\n"),
    ("print", "print({e})\ns += x.sum()\n"),
]
BLOCKS = [
    ("straight", "{s}\n"),
    ("for arms", "for i in range(n):\n    if x[i] > 0.5:\n{s2}\n    else:\n        s += 0.5\n"),
    ("for", "for i in range(n):\n    s += x[i]\n{s1}\n"),
    ("long for", "for i in range(12):\n    s += x[0]\n{s1}\n"),
    ("if", "if x.sum() > 1.2:\n{s1}\nelse:\n    s -= 2\n"),
    ("else", "if x.sum() > 1.2:\n    s -= 2\nelse:\n{s1}\n"),
    ("elif", "if x[0] > 0.7:\n    s += 1\nelif x[0] > 0.3:\n{s1}\nelse:\n    s += 2\n"),
    ("while", "k = 0\nwhile k < n:\n    s += x[k]\n    k += 1\n{s1}\n"),
    ("while on data", "k = 0\nwhile s < x.sum() + 3 and k < 9:\n    s += 1\n    k += 1\n{s1}\n"),
    ("nested", "for i in range(n):\n    for j in range(3):\n        s += x[i]\n{s2}\n"),
    ("try", "try:\n    for i in range(n):\n        s += x[i]\n{s2}\nexcept (StopIteration, IndexError, KeyError, ValueError):\n    s -= 1\n"),
]
# Changes between calls: the setup, expressions that use the object, and what is done between calls.
FUNCTION = "def helper(v, k=2.0, *, w=1.0):\n    return v * k + w\n\n\ndef other(v, k=4.0, *, w=1.0):\n    return v - k - w"
CLASS = """
class Thing:
    k = 2.0

    def __init__(self, a=1.0):
        self.a = a
        self.items = [1.0, 2.0]

    def get(self, v, w=1.0):
        return v * self.k + self.a + w

    @property
    def half(self):
        return self.a / 2

    @staticmethod
    def static(v, w=3.0):
        return v + w

    @classmethod
    def of(cls, v):
        return v * cls.k


class Child(Thing):
    pass


thing, twin, box = Thing(), Child(2.0), {"a": 1.0, "b": [2.0]}"""
CELLS = """
def pair():
    k = 2.0

    def get(v):
        return v * k

    def more():
        nonlocal k
        k += 1

    return get, more


get, more_of_it = pair()"""
VECTORIZED = """
def factor(v, k=2.0):
    return v * k


scaled, doubled = np.vectorize(factor), np.vectorize(lambda v: v * 2.0, otypes=["f8"])
doubled.otypes = [*doubled.otypes]  # as NumPy 2.5 has them"""
SHARED = """
class Shared:
    k, data, items = 2.0, np.ones(3), [1.0]


class Heir(Shared):
    pass


shared, heir = Shared(), Heir()


def kept_again(o):
    o.k = o.k
    return o.k


def moved(o, v):
    o.k += v
    o.k -= v
    return o.k


def summed(o, v):
    o.data += v
    return o.data[0]


def extended(o, v):
    o.items += [v]
    return len(o.items)"""
UNEQUAL = """
unequal = float("nan")
key, table, members, rows = [unequal], {unequal: 2.0, 1.0: 3.0}, {unequal}, [unequal, 3.0]"""
WARNED = """
import warnings

FILTER = "always"


def noted(v, text="look"):
    warnings.warn(text, stacklevel=1)
    return v * 2.0


def noted_twice(v):
    return noted(v) + noted(v, "listen")"""
CHANGING = [
    (WARNED, ["noted({v})", "noted({v}, 'see')", "noted_twice({v})", "(noted_twice({v}) if x[0] > 0.5 else 1.0)"], [
        *(f"global FILTER\nFILTER = {action!r}" for action in ("ignore", "always", "default", "error")), "noted.__defaults__ = ('hear',)",
        "globals()['noted'] = abs",
    ]),
    (UNEQUAL, [
        "table.get(key[0], 5.0) + {v}", "float(key[0] in table) + {v}", "float(key[0] in members) * {v}", "float(key[0] in rows) + {v}",
        "table.setdefault(key[0], 4.0) + {v}", "table.get({v}, 6.0) + {v}", "float(key == rows[:1]) + {v}", "rows.count(key[0]) + {v}",
        "float((key[0], 1) == (rows[0], 1)) + {v}", "float([{v}, key[0]] == [{v}, rows[0]])", "float(key[0] in [{v}, *rows])", "rows.index(rows[-1]) + {v}",
        "(rows + [{v}]).count(rows[0])", "float([{v}, 1.] in [[{v}, 1.]])", "float({'a': rows[0]} == {'a': key[0]}) + {v}", "float(rows != [*rows]) + {v}",
        "float(key[0] in table.values()) + {v}",
    ], [
        "key[0] = 1.0", "key[0] = unequal", "key[0] = float('nan')", "key[0] = 2", "table[unequal] = 8.0", "members.discard(unequal)", "rows.append(key[0])",
        "key[0] = 7.5", "rows[0] = key[0]", "rows[0] = 5.0", "rows.insert(0, 1.0)", "table[1.0] = unequal",
    ]),
    (VECTORIZED, ["scaled({v}) + 0.0", "scaled(x).sum() * {v}", "doubled({v}) + 0.0", "doubled(x)[0] + {v}", "scaled({v}, 3.0) + 0.0"], [
        "scaled.pyfunc = lambda v, k=1.0: v + k", "doubled.pyfunc = abs", "scaled.otypes = 'f'", "doubled.otypes = 'i'", "doubled.otypes = None",
        "scaled.excluded = {1}", "scaled.signature = None", "scaled.cache = not scaled.cache", "factor.__defaults__ = (factor.__defaults__[0] + 1,)",
        "globals()['scaled'] = doubled", "scaled.__doc__ = 'a'",
    ]),
    (SHARED, [
        "kept_again(shared) + {v}", "moved(shared, {v})", "summed(shared, {v})", "extended(shared, {v})", "kept_again(heir) * {v}", "moved(heir, {v})",
        "summed(heir, {v})", "(kept_again(shared) if {v} > 0.5 else 1.0)", "shared.k + {v}", "len(vars(shared)) + {v}",
    ], [
        "Shared.k += 1", "Heir.k = 7.0", "vars(shared).clear()", "vars(heir).clear()", "Shared.data = np.ones(3) * 4", "shared.k = 5.0", "Shared.items = [2.0, 3.0]",
        "del shared.k", "Shared.data += 1",
    ]),
    (FUNCTION, ["helper({v})", "helper({v}, w=2.0)", "other({v}, 3.0)", "sum(map(helper, [1.0, {v}]))", "max(x, key=helper)"], [
        "helper.__defaults__ = (helper.__defaults__[0] + 1,)", "helper.__kwdefaults__['w'] += 1", "other.__defaults__ = (0.5,)",
        "helper.__code__, other.__code__ = other.__code__, helper.__code__", "helper.__kwdefaults__ = {'w': 7.0}",
        "globals()['helper'] = lambda v, k=1.0, w=9.0: v + w", "helper.extra = 1",
    ]),
    (CLASS, [
        "thing.get({v})", "twin.get({v})", "thing.a * {v}", "twin.k + {v}", "thing.half + {v}", "Thing.static({v})", "Child.of({v})",
        "Child(3.0).a + {v}", "Thing.get(twin, {v})", "getattr(thing, 'k') * {v}", "float(hasattr(thing, 'q')) + {v}", "float(isinstance(twin, Thing))",
        "sum(thing.items)", "thing.items[0] * {v}", "len(thing.items) * {v}", "box['a'] * {v}", "box['b'][0] + {v}", "len(box) + {v}",
        "sum(box['b'])", "float('q' in box)", "float(thing == twin)", "(1.0 if thing else 2.0)", "[*thing.items][-1]", "vars(thing)['a'] + {v}",
    ], [
        "Thing.k += 1", "Child.k = 7.0", "thing.k = 5.0", "thing.a += 1", "Thing.get.__defaults__ = (4.0,)", "Thing.get = lambda self, v, w=0: v - w",
        "thing.get = lambda v, w=0: v", "Thing.half = property(lambda self: 9.0)", "Thing.static = staticmethod(lambda v, w=0: v)",
        "Thing.__init__ = lambda self, a: setattr(self, 'a', a * 10)", "Thing.__eq__ = lambda self, other: True", "Thing.__bool__ = lambda self: False",
        "Thing.__len__ = lambda self: 0", "twin.__class__ = Thing", "thing.items.append(3.0)", "thing.items[0] += 1", "thing.items = [5.0]",
        "thing.items.insert(0, 4.0)", "box['a'] += 1", "box['b'].append(9.0)", "box['b'][0] = 8.0", "box['q'] = 1.0", "box.pop('q', None)", "thing.q = 1",
        "globals()['thing'] = twin", "Thing.__getattr__ = lambda self, name: 6.0", "Child.__bases__ = (Thing,)", "del thing.items[0]",
    ]),
    (CELLS, ["get({v})", "sum(map(get, [1.0, {v}]))"], ["more_of_it()", "get.__closure__[0].cell_contents = 11.0", "globals()['get'] = pair()[0]"]),
    ("k, flag, name, sizes = 2.0, True, 'a', (3, 4)", [
        "k * {v}", "({v} if flag else -{v})", "float(name == 'a') + {v}", "sizes[0] + {v}", "len(sizes) * {v}", "len(name) + {v}", "float(k is sizes)",
    ], ["global k\nk += 1", "global flag\nflag = not flag", "global name\nname += 'a'", "global sizes\nsizes = (*sizes, 1)", "global k\nk = int(k)", "global sizes\nsizes = [5]"]),
    ("", ["abs({v} - 1)", "math.sqrt({v})", "max({v}, 0.25)", "float(np.floor({v}))", "round({v} * 8)", "len(x) + {v}"], [
        "globals()['abs'] = lambda v: v + 7", "globals()['max'] = min", "globals().pop('abs', None)", "globals()['len'] = lambda v: 3",
        "globals()['round'] = lambda v: v", "globals()['float'] = lambda v: -v",
    ]),
    ("rows, key = np.arange(5.0), (slice(None), slice(Index(1), 4))", [
        "rows[key[1]].sum() + {v}", "key[1].start.k * {v}", "len(rows[key[1]]) + {v}", "float(key[1].start.k) + {v}", "[*range(9)][key[1]][0] * {v}",
    ], ["key[1].start.k += 1", "key[1].start.k = 0", "key[1].start.k = 3", "global key\nkey = (1, slice(Index(2), 4))", "rows[1] += 5.0"]),
]
PLACES = ["local", "local", "local", "global", "argument", "default", "cell"]


def indented(text, depth):
    return "\n".join("    " * depth + line for line in text.rstrip("\n").split("\n"))


GROWN = [
    "len(o)", "len(copy.copy(o))", "len(o.copy())", "sum(o)", "max(o)", "sorted(o)[0]", "len(sum([o, [1.]], []))", "o[0]", "o[-1]", "len(o[1:])",
    "o.append(s) or 1.", "o.reverse() or o[0]", "o.count(1.)", "o.index(o[-1])", "len([*o, 1.])", "float(3. in o)", "len(o + [1.])", "len(o * 2)",
    "float(o == [3., 1.])", "len(tuple(o))", "len(str(o))", "np.sum(o)", "len(json.dumps([float(v) for v in o]))", "o.pop() if o else 1.", "next(iter(o))",
    "o.insert(0, 2.) or 1.", "max([o, [9.]])[0]", "float(any(v > 2 for v in o))", "functools.reduce(operator.add, o)", "len([*map(type, o)])",
    "len({type(v) for v in o})", "o.sort() or o[0]", "o.remove(o[0]) or 1.", "o.extend(o) or 1.", "float(type(o[0]) is float)",
]
READ_AND_CHANGED = [f"{read} + ({change})" for read in ("len(repr(o))", "len(o + [1.])", "sum(o)") for change in ("o.append(x[0]) or 1.", "o.reverse() or o[0]", "o.pop() if o else 1.")]
SET = next(entry for entry in OBJECTS if entry[0] == "{1, 2, 3}")
FOCUSED = [
    ("grown(x)", GROWN, ["o[0] = s", "del o[0]", "o += [1.]", "o.append(s)", "for v in o:\n    s += v", "o = o + [s]", "o.reverse()"], "(list(o), len(o))"),
    ("kept(x)", [*(use for use in GROWN if "np.sum" not in use), *READ_AND_CHANGED], ["s += len(repr(o))\no.append(x[0])", "s += len(o + [1.])\no[0] = x[1]", "o.append(x[0])", "o.append(s)", "for v in o:\n    s += v", "o.reverse()", "o.sort()", "o.reverse()\no.append(x[0])"], "(list(o), len(o))"),
    ("trail(x)", GROWN, ["o.append(s)", "o[0] = s", "for v in o:\n    s += v", "k = s\no.append(k)"], "(list(o), len(o))"),
    ("[]", ["o.append(s) or x[0]", "o.append((s, n)) or 1.", "len(o)", "float(type(s) is float)"], ["o.append(s)", "o.append([s])", "o += [s]"], "(list(o), len(o))"),
    ("bumper()", ["o()", "o(2.)", "o() + o()", "sum(map(o, [1., 2.]))", "max(o(), s)"], ["o()", "s += o(s)", "for k in range(2):\n    o()"], "o(0.)"),
    ("{1, 2, 3}", SET[1], [*SET[2], "o.add(n + 4)", "o.discard(1)", "o.pop()", "o.clear()"], "(list(o), len(o))"),
    ("Box(2.)", ["copy.copy(o).value", "copy.deepcopy(o).value", "len(repr(o.__dict__)) * 1.", "o.value"],
     ["o.value = x.sum()", "o.value += 1", "o.value = s", "o.value, o.other = 1., s", "o.value = s\ns += copy.copy(o).value"], "sorted(o.__dict__.items(), key=lambda p: p[0])"),
    ("[1., 2.]", ["copy.copy(o)[0]", "copy.deepcopy(o)[1]", "len(repr(o)) * 1.", "o[0]", "sum(o)"], ["o[0] = s", "o[1] += x[0]", "o[0], o[1] = o[1], o[0]", "o[0] = s\ns += copy.copy(o)[0]"], "list(o)"),
    ("{3: 1., 1: 2.}", ["o.pop(3, 1.)", "o.setdefault(n, s)", "o.update({n: 2.}) or 1."], ["o[n] = s", "o[3] = s", "o.pop(3, 0)", "o.clear()"], "list(o.items())"),
]
# Operands that wait on the stack while a later one takes the array away.
WAITING = [
    "[x * 2]",
    [
        "(o[0] + T(o, x))[0]", "(o[0], T(o, x))[0][-1]", "np.hypot(o[0], T(o, x))[0]", "float((o[0] < T(o, x)).sum())", "[o[0], T(o, x)][0].sum()",
        "{1: o[0], 2: T(o, x)}[1][0]", "o[0].__add__(T(o, x))[0]", "(lambda a=o[0], b=T(o, x): a[0] + b)()", 'len(f"{o[0].sum() > T(o, x)}")',
        "[*map(lambda k: T(o, x) if k else o[0], (0, 1))][0][0]", "{k: T(o, x) if k else o[0] for k in (0, 1)}[0][0]",
        "sum((v if k else T(o, x)) for k, v in enumerate([0., o[0][0]]))", "(lambda h: (h, T(o, x))[0])(o[0])[0]", "(o[0] + (T(o, x) if x[0] > 0.4 else 1.))[0]",
    ],
    ["o[0] += T(o, x)", "t = o[0] + T(o, x)\ns += t[0]", "for v in [x * 0, o[0]]:\n    s += T(o, x) + v[0]", "z = [o[0]]\nz[0] += T(o, x)\ns += z[0][0]"],
    "o",
]


# Objects whose death is noted, and buffers that live as long as an array.
DEATHS = [
    ("watched()", ["len([watched(), watched()])", "[watched()].pop() and 1.", "{1: watched()}.pop(1) and 1.", "(lambda: (watched(), 2.))()[1]", "next(closing())",
                   "[v for v, _ in zip(closing(), [1])][0]", "sum(closing())"],
     ["o = watched()\nLOG.append(n)", "t = watched()\ns += x.sum()\nt = 0\nLOG.append(n)", "for v in closing():\n    s += v\n    break", "t = closing()\ns += next(t)\ndel t"], "len(LOG)"),
    ("bytearray(b'abc')", ["float(np.frombuffer(o, 'u1').sum())", "np.frombuffer(o, 'u1')[0] + (o.append(3) or 1.)", "float((memoryview(o)[0], o.append(1))[0])", "len(o)"],
     ["t = np.frombuffer(o, 'u1')\ns += t.sum()\ndel t\no += b'q'", "s += np.frombuffer(o, 'u1').sum()\ndel o[0]", "o.extend(b'xy')", "t = memoryview(o)\ns += t[0]\ndel t\no[1:2] = b'long'"],
     "bytes(o)"),
    ("[watched()]", ["len(o)", "len([*o])", "o.append(watched()) or 1."],
     [f"t = o[-1] if o else 0\n{between}\no.clear()\nt = 0\nLOG.append(n)" for between in (
         "for i in range(n):\n    s += x[i]", "k = 0\nwhile k < n:\n    s += x[k]\n    k += 1", "while s < x.sum():\n    s += 1.5", "if x[0] > 0.5:\n    s += x[1]",
         "s += x[0] if x[1] > 0.5 else 1.0", "s += 1 if x[0] > 0.5 and x[1] > 0.2 else 0", "for i in range(3):\n    s += x[i]")], "len(LOG)"),
]
FOCUSED += DEATHS
# Iterators that are advanced after their container has changed.
KEPT = [
    (made, ["len(o)", "sum(o)", "next(iter(o), 1.)"], [
        f"it = {iterator}\n{change}\ns += {use}" for iterator in iterators for change in changes
        for use in ("len([*it])", "len(str(next(it, 7.)))", "float(3.0 in it)", "len([*itertools.islice(it, 2)])", "sum(1.0 for v in it)")
    ], "list(o.items()) if type(o) is dict else list(o)")
    for made, iterators, changes in (
        ("{1.0: 2.0, 3.0: 4.0}", ["iter(o)", "iter(o.items())", "zip(o, x)", "enumerate(o.values())", "map(abs, o)", "itertools.chain(o, [9.])", "iter(o.keys())"], [
            "for v in x:\n    o[v] = v", "o[x[0]] = s", "o[1.0] = s", "if x[0] > 0.5:\n    o[9.0] = s", "o.pop(1.0, 0)", "t = next(it, 0)\nfor v in x:\n    o[v] = 1.0",
        ]),
        ("{}", ["iter(o)", "zip(o.values(), o)", "enumerate(o)", "itertools.chain(o, [1.])", "filter(None, o)"], ["for v in x:\n    o[v] = v", "o[s] = 1.0", "o.clear()"]),
        ("[1., 2.]", ["iter(o)", "zip(o, x)", "enumerate(o)", "map(abs, o)", "reversed(o)", "itertools.chain(o, o)", "iter([*o])"], [
            "for v in x:\n    o.append(v)", "o.append(s)", "o.insert(0, s)", "del o[0]", "o.clear()", "if x[0] > 0.5:\n    o.append(s)", "t = next(it, 0)\nfor v in x:\n    o.append(v)",
        ]),
    )
]
FOCUSED += KEPT


def with_text(entry, name, text):
    """The entry with a text in place of a name."""
    return tuple(part.replace(name, text) if isinstance(part, str) else [use.replace(name, text) for use in part] for part in entry)


FOCUSED += [with_text(WAITING, "T(", f"{name}(") for name in ("taken", "looped")]
OVER_ARRAYS = ["enumerate(x)", "zip(x, x[1:])", "np.ndenumerate(x)", "enumerate(x * 2)", "zip(x, x)", "zip(range(n), x)", "iter(np.stack([x, x], 1))"]
USE_PAIRS = ["next(it)[1]", "next(it, (1., 2.))[1]", "len([*it])", "sum(v for _, v in it)", "len([*zip(it, it)])", "[*itertools.islice(it, 2)][0][1]",
             "sum(next(it)[1] + v for v in x)", "float(iter(it) is it)", "it.__next__()[1]", "len([*enumerate(it)])", "max(it)[1]"]
STATEMENTS_PAIRS = ["for a, b in it:\n    s += b", "for a, b in it:\n    s += b\n    break", "a, b = next(it)\ns += b", "for k, (a, b) in enumerate(it):\n    s += k * b"]


# References to an object without a name: a statement that stores it, and an expression that reads it.
UNNAMED = [
    ("def h(o={made}):\n    return o\n", "h()"),
    ("def h(*, o={made}):\n    return o\n", "h()"),
    ("h = lambda o={made}: o\n", "h()"),
    ("def h():\n    return 0\nh.o = {made}\n", "h.o"),
    ("h = around({made})\n", "h()"),
    ("h = ValueError({made})\n", "h.args[0]"),
    ("h = ValueError()\nh.o = {made}\n", "h.o"),
    ("h = KeyError()\nh.__cause__ = ValueError({made})\n", "h.__cause__.args[0]"),
    ("h = [{made}].__getitem__\n", "h(0)"),
    ("h = {'k': {made}}.get\n", "h('k')"),
    ("h = {'k': {made}}.values()\n", "[*h][0]"),
    ("h = {'k': {made}}.items()\n", "next(iter(h))[1]"),
    ("h = types.MappingProxyType({'k': {made}})\n", "h['k']"),
    ("h = functools.partial(lambda o: o, {made})\n", "h()"),
    ("h = functools.partial(lambda v, o: o, o={made})\n", "h(1)"),
    ("h = functools.partial(max)\nh.o = {made}\n", "h.o"),
    ("class H:\n    o = {made}\n", "H.o"),
    ("class H:\n    def get(self, o={made}):\n        return o\nh = H().get\n", "h()"),
    ("class H:\n    @staticmethod\n    def get(o={made}):\n        return o\n", "H.get()"),
    ("class H:\n    @property\n    def v(self, o={made}):\n        return o\nh = (H(),)\n", "h[0].v"),
    ("class H(collections.namedtuple('H', 'a')):\n    pass\nh = H(1.)\nh.o = {made}\n", "h.o"),
    ("h = types.SimpleNamespace(o={made})\n", "h.o"),
    ("h = Slotted()\nh.v = {made}\n", "h.v"),
    ("h = itertools.repeat({made})\n", "next(h)"),
    ("h = iter([{made}] * 99)\n", "next(h)"),
    ("h = map(lambda v, o={made}: o, itertools.count())\n", "next(h)"),
    ("h = itertools.starmap(lambda a, b, o={made}: o, itertools.repeat((1., 2.)))\n", "next(h)"),
    ("h = forever({made})\n", "next(h)"),
    ("h = slice({made}, None)\n", "h.start"),
    ("def h(v: {made}):\n    return v\n", "h.__annotations__['v']"),
    ("h = (({made},),)\n", "h[0][0]"),
]
# Constructs that hold the only reference to their iterable; {m}: the expression that makes it; {s1}: a statement.
ITERATED = [
    "for o in itertools.repeat({m}, 6):\n{s1}\n    s += {e}\n",
    "for v, o in zip(x, [{m}] * n):\n{s1}\n    s += {e} * v\n",
    "for k, o in enumerate(itertools.repeat({m}, n)):\n    s += {e} + k\n{s1}\n",
    "for o in itertools.repeat({m}, 6):\n    s += {e}\n",
    "for o in [{m}] * n:\n    s += {e}\n",
    "for v, o in zip(x, [{m}] * n):\n    s += {e} * v\n",
    "for k, o in enumerate([{m}] * n):\n    s += {e} + k\n",
    "for v, o in zip(x, itertools.cycle([{m}, {m}])):\n    s += {e} + v\n",
    "for v in map(lambda v, o={m}: v + {f}, x):\n    s += v\n",
    "for v in itertools.starmap(lambda a, b, o={m}: a * b + {f}, zip(x, x)):\n    s += v\n",
    "for v in filter(lambda v, o={m}: {f} > 2, x):\n    s += v\n",
    "for v in itertools.accumulate(x, lambda a, b, o={m}: a + {f}):\n    s += v\n",
    "s += sum(map(lambda v, o={m}: v + {f}, x))\n",
    "s += max([*map(lambda v, o={m}: v + {f}, x)])\n",
    "s += sum({e} * v for v, o in zip(x, [{m}] * n))\n",
    "s = functools.reduce(lambda s, v, o={m}: s + {f}, x, s)\n",
    "s += sorted(range(3), key=lambda v, o={m}: {f})[0]\n",
]
OF_FUNCTIONS = [
    ("bare()", ["o.n", "o()", "o.n * x[0]"], ["o.n = x.sum()", "o.n += s", "o.n = s", "o.n += 1\ns += o()"], "o.n"),
    ("counted(abs)", ["o(s)", "o(2.)", "sum(map(o, [1., 2.]))", "o(x[0])"], ["s = o(s)", "o.calls = 0", "o(1.)"], "o.calls"),
]
OF_ARRAYS = [
    ("x.copy()", ["o.sum()", "o[0]"], [
        "z = o\nif x.sum() > 1.2:\n    z = x + 1\nz += 1\ns += z.sum()", "z = o\nfor k in range(4):\n    z = z * 2\n    z += 1\ns += z.sum()",
        "z = o * 1\nm = iter(z)\nif x.sum() > 1.2:\n    z = x + 1\nz += 1\ns += z.sum() - next(m)",
        "z = o * 1\nm = functools.partial(np.sum, z)\nif x.sum() > 1.2:\n    z = x + 1\nz += 1\ns += z.sum() - m()",
        *(f"z = o * 1\nm = z.{method}\n{change}\ns += z.sum() - m({given})" for method, given in (("sum", ""), ("__getitem__", "0"), ("item", "0"), ("max", ""))
          for change in ("if x.sum() > 1.2:\n    z = x + 1\nz += 1", "for k in range(4):\n    z += 1\n    z = z * 2")),
    ], "o"),
]
REBINDS = re.compile(r"\bo\b *[-+*|&^]?= ")


class Generator:
    """The source of one program, and its arguments at several sizes."""

    def __init__(self, seed):
        self.seed = seed
        self.random = random.Random(seed)

    def pick(self, items):
        return self.random.choice(items)

    def family(self):
        """How the object is made, expressions that use it, statements that use it, and its final state."""
        kind = self.random.random()
        if self.seed % 5 == 3:
            if kind < 0.25:
                return self.pick(OVER_ARRAYS).replace("range(n)", "range(len(x))"), USE_PAIRS, STATEMENTS_PAIRS, "left(it)", "it"
            return *self.pick(FOCUSED), "o"
        if kind < 0.3:
            made = self.pick(ITERATORS)
            uses, statements = (
                [use for use in every if made not in ENDLESS or use not in DRAINS]
                for every in (USE_ITERATOR, STATEMENTS_ITERATOR)
            )
            return made, uses, statements, "left(it)", "it"
        if kind < 0.36:
            uses = [f"{u}[0]" for u in ("next(it)", "next(it, (1., 2.))", "next(iter(it))", "[*itertools.islice(it, 2)][0]")]
            return self.pick(PAIRS), uses, ["for a, b in it:\n    s += a * b", "(a, b), *c = it\ns += a * b"], "left(it)", "it"
        if kind < 0.75:
            made, uses, statements, rest = self.pick(OBJECTS)
            return made, uses, statements, rest, "o"
        made, uses = self.pick(HOOKS)
        return made, uses, [f"s += {u}" for u in uses], "len(LOG)", "o"

    def changing(self):
        """A program, and the changes between its calls."""
        setup, uses, changes = self.pick(CHANGING)
        body = []
        for _ in range(self.random.choice([1, 2, 3])):
            use = self.pick(uses).replace("{v}", self.pick(["x[0]", "s", "x.sum()", "2.0"]))
            body.append(self.pick(CONSTRUCTS)[1].replace("{e}", use).replace("{f}", self.pick(uses).replace("{v}", "1.5")))
        between = [f"def between_{k}():\n{indented(self.pick(changes), 1)}\n" for k in range(4)]
        step = "def between(k):\n    with contextlib.suppress(Exception):  # what one changed another may miss\n        [between_0, between_1, between_2, between_3][k]()\n"
        text = "n, s = len(x), 0.0\n" + "".join(body) + "r = None\nreturn s, r"
        return "\n\n".join([PRELUDE, setup, f"def program(x):\n{indented(text, 1)}\n", *between, step])

    def unnamed(self):
        """A program whose object has no name: only a container or the iterable of a loop refers to it."""
        made, uses, statements, rest = self.pick(self.pick([OBJECTS, OBJECTS, FOCUSED, OF_FUNCTIONS, OF_ARRAYS]))
        holder, read = self.pick(UNNAMED)
        is_arg_position = read.endswith((".o", ".v", "]"))
        held = functools.partial(re.compile(r"\bo\b").sub, lambda _: read)
        statements = [s for s in statements if is_arg_position or not REBINDS.search(s)]
        body, share = [], len(uses) / (len(uses) + len(statements))
        for _ in range(self.random.choice([1, 1, 2])):
            kind = self.random.random()
            if kind < 0.25:  # functions do not see the program's `s`
                text = self.pick(ITERATED).replace("{m}", made).replace("{e}", self.pick(uses)).replace("{f}", self.pick(uses))
                body.append(text.replace("{s1}", indented(self.pick(statements or ["pass"]), 1)))
            elif kind < 0.25 + 0.75 * share:
                text = self.pick(CONSTRUCTS)[1].replace("{e}", held(self.pick(uses)))
                body.append(text.replace("{f}", held(self.pick(uses))))
            else:
                s = held(self.pick(statements))
                is_straight = "\n    " in s and self.random.random() < 0.5  # it has a construct of its own
                text = (BLOCKS[0] if is_straight else self.pick(BLOCKS))[1]
                body.append(text.replace("{s2}", indented(s, 2)).replace("{s1}", indented(s, 1)).replace("{s}", s))
        setup = holder.replace("{made}", made)
        if self.random.random() < 0.25:  # in a function of its own, after which only the result is left
            inner = f"def inner(s):\n{indented(setup + ''.join(body), 1)}\n    return s\n"
            text = f"n, s = len(x), 0.0\n{inner}s = inner(inner(s))\nreturn s"
        else:
            text = f"n, s = len(x), 0.0\n{setup}{''.join(body)}r = {held(rest)}\nreturn s, r"
        return f"{PRELUDE}\n\ndef program(x):\n{indented(text, 1)}\n"

    def source(self):
        if self.seed % 5 == 4:
            return self.changing()
        if self.seed % 5 == 2:
            return self.unnamed()
        made, uses, statements, rest, name = self.family()
        place = self.pick(PLACES)
        if place != "local" and ("x" in made.replace("max", "").replace("Index", "").replace("extend", "").replace("xy", "")):
            place = "local"
        body = []
        for _ in range(self.random.choice([1, 1, 2])):
            if self.random.random() < 0.7:
                construct = self.pick(CONSTRUCTS)[1]
                body.append(construct.replace("{e}", self.pick(uses)).replace("{f}", self.pick(uses)))
            else:
                construct, s = self.pick(BLOCKS)[1], self.pick(statements)
                body.append(construct.replace("{s2}", indented(s, 2)).replace("{s1}", indented(s, 1)).replace("{s}", s))
        if self.seed % 5 == 3 and self.random.random() < 0.4:  # made in each iteration, and changed further in it
            place, inside = "inside", f"{name} = {made}\n" + "".join(body) + f"s += len(repr({rest}))\n"
            body, rest = [f"for j in range({self.pick(['2', 'n'])}):\n{indented(inside, 1)}\n"], "n"
        lines = [PRELUDE, ""]
        head, setup, tail = "def program(x):", "", ""
        if place == "inside":
            pass
        elif place == "local":
            setup = f"{name} = {made}\n"
        elif place == "global":
            lines.append(f"{name} = {made}\n")
            if "it" != name and any(f"{name} {op}= " in b for b in body for op in "+-*|&^") or any(f"{name} = " in b for b in body):
                setup = f"global {name}\n"
        elif place == "argument":
            head = f"def program(x, {name}):"
            tail = f"\n\ndef more():\n    return ({made},)\n"
        elif place == "default" and random.Random(~self.seed).random() < 0.5:
            head = f"def program(x, {name}={made}):"
        elif place == "default":  # an attribute of the function itself
            setup, tail = f"{name} = program.kept\n", f"\n\nprogram.kept = {made}\n"
        else:
            changed = any(f"{name} {op}= " in b for b in body for op in "+-*|&^") or any(f"{name} = " in b for b in body)
            setup = f"nonlocal {name}\n" if changed else ""
        if name == "o" and place != "inside" and random.Random(~self.seed).random() < 0.15:  # other code has it from here on
            setup += "LOG.append(o)\n"
        shared = "LOG.append(lambda: s)\n" if random.Random(~self.seed).random() > 0.95 else ""
        text = f"{setup}n, s = len(x), 0.0\n{shared}{''.join(body)}r = {rest}\nreturn s, r"
        if place == "cell":
            lines.append(f"def outer():\n    {name} = {made}\n\n{indented(head, 1)}\n{indented(text, 2)}\n\n    return program\n\n\nprogram = outer()")
        else:
            lines.append(head + "\n" + indented(text, 1))
        lines.append(tail)
        return "\n".join(lines)
