"""Functions that read attributes of every kind, for tests/capture/test_changing_world.py.

Each function of PROGRAMS takes an array and the values that ARGUMENTS has for it. The module is loaded more than
once, so nothing here keeps state outside of the module.
"""

import abc
import dataclasses
import enum
import functools
import math
import operator
import types
import typing
from collections import namedtuple

import numpy as np

PROGRAMS = []
LOG = []  # what functions note, besides their results
ARGUMENTS = {}


def program(fn):
    PROGRAMS.append(fn)
    return fn


def given(*arguments):
    def enter(fn):
        ARGUMENTS[fn.__name__] = arguments
        return program(fn)

    return enter


class Base:
    """Base."""

    z = 2.0
    step = 1.0

    def __init__(self, v=3.0):
        self.v = v

    def get(self):
        return self.v * self.z

    @classmethod
    def made(cls, v=2.0):
        return cls(v)

    @staticmethod
    def fixed(k=1.5):
        return k

    @property
    def twice(self):
        return self.v * 2


class Left(Base):
    """Left."""

    step = 2.0

    def get(self):
        return super().get() + 1.0


class Right(Base):
    def get(self):
        return super().get() * 3.0


class Both(Left, Right):
    k = 0.5

    def __init__(self, v=3.0, w=1.0):
        super().__init__(v)
        self.w = w

    def get(self):
        return super().get() + self.w

    def above(self):
        return super(Left, self).get() + super().step + super().z

    @property
    def twice(self):
        return super().twice + 1.0

    @classmethod
    def made(cls, v=4.0):
        return super().made(v)


BASE, LEFT, BOTH = Base(), Left(2.0), Both()


@program
def super_method(x):
    return x * BOTH.get()


@program
def super_between(x):
    return x * BOTH.above()


@program
def super_property(x):
    return x * BOTH.twice


@program
def super_class_method(x):
    return x * Both.made().v


@program
def super_init(x):
    return x * Both(x[0]).get()


@program
def super_outside(x):
    return x + super(Both, BOTH).get() + super(Left, BOTH).z + super(Both, Both).fixed()


@given(Both(5.0), Left(1.0))
def super_argument(x, o, p):
    return x * o.get() + p.get() * p.step


@program
def class_attributes(x):
    return x * Both.k + Left.z + Base.step


@program
def object_attributes(x):
    return x * BASE.v + LEFT.z + BOTH.step + BOTH.k


@program
def static_and_class(x):
    return x * Base.fixed() + BOTH.fixed() + BOTH.made().v


class Cfg:
    """Documented."""

    __gain__ = 3.0
    _gain = 2.0
    __slots__ = ("a", "b")

    def __init__(self):
        self.a, self.b = 1.0, 2.0


CFG = Cfg()


@program
def dunder_of_class(x):
    return x * Cfg.__gain__


@program
def dunder_of_object(x):
    return x * CFG.__gain__ + CFG._gain


@program
def slots(x):
    return x * CFG.a + CFG.b


@program
def doc_of_class(x):
    return x + len(Cfg.__doc__)


@program
def doc_of_object(x):
    return x + len(CFG.__doc__)


@program
def name_of_class(x):
    return x + len(Cfg.__name__) + len(Cfg.__qualname__) + len(Cfg.__module__)


@program
def name_of_objects_class(x):
    return x + len(type(BOTH).__name__) + len(BOTH.__class__.__name__)


@program
def bases(x):
    return x + len(Both.__bases__) + len(Both.__mro__)


@program
def dict_of_class(x):
    return x * Both.__dict__["k"] + vars(Base)["z"]


@program
def dict_of_object(x):
    return x * BOTH.__dict__["v"] + vars(BASE)["v"]


@program
def class_of_object(x):
    return x * type(BOTH).k + BOTH.__class__.z


def helper(v, k=2.0, *, m=1.0):
    """Scales."""
    return v * k + m


helper.calls = 3.0


@program
def called(x):
    return helper(x)


@program
def name_of_function(x):
    return x + len(helper.__name__) + len(helper.__qualname__)


@program
def doc_of_function(x):
    return x + len(helper.__doc__)


@program
def defaults_of_function(x):
    return x * helper.__defaults__[0] + helper.__kwdefaults__["m"]


@program
def attribute_of_function(x):
    return x * helper.calls + helper.__dict__["calls"]


@program
def code_of_function(x):
    return x + helper.__code__.co_argcount


@program
def globals_of_function(x):
    return x * helper.__globals__["GAIN"]


GAIN = 2.5
TABLE = {"a": 1.0, "b": [2.0, 3.0], 3: (4.0, np.float32(5.0))}
ROWS = [1.0, 2, [3.0, np.arange(2.0)], {"c": 4.0}]


@program
def name_of_global(x):
    return x * GAIN + TABLE["a"] + ROWS[0]


@program
def nested(x):
    return x * TABLE["b"][1] + TABLE[3][1] + ROWS[2][0] + ROWS[2][1].sum() + ROWS[3]["c"]


@program
def all_items(x):
    s = x * 1.0
    for v in TABLE["b"]:
        s = s + v
    for key, value in TABLE.items():
        if key == "a":
            s = s * value
    return s + len(ROWS) + len(TABLE)


@program
def membership(x):
    return x + (2.0 in TABLE["b"]) + ("a" in TABLE)


def around():
    k, rows = 2.0, [1.0, 2.0]

    def inner(x, d=[1.0]):  # noqa: B006
        return x * k + rows[1] + d[0]

    return inner


INNER = around()
closure = around()
closure.__name__ = "closure"
program(closure)


@program
def closure_of_helper(x):
    return INNER(x)


@program
def cell_of_function(x):
    return x * INNER.__closure__[0].cell_contents


def default_of_its_own(x, k=2.0, rows=[1.0], *, m=3.0, t=(1.0, 2)):  # noqa: B006
    return x * k + rows[0] + m + t[1]


program(default_of_its_own)


@dataclasses.dataclass
class Point:
    a: float = 1.0
    b: float = 2.0

    def norm(self):
        return self.a + self.b


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float = 1.0
    b: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class After:
    a: float = 1.0
    b: dataclasses.InitVar[float] = 4.0

    def __post_init__(self, b):
        self.c = self.a + b


@program
def dataclass_defaults(x):
    return x * Point().b + Point(2.0).norm()


@program
def dataclass_frozen(x):
    return x * Frozen().a + len(Frozen().b)


@program
def dataclass_after(x):
    return x * After().c


@program
def dataclass_of_class(x):
    return x * Point.b + len(Point.__match_args__)


class Colour(enum.Enum):
    RED = 2.0
    BLUE = 3.0

    @property
    def half(self):
        return self.value / 2


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


offset = 1.0


class Looked(enum.EnumMeta):
    """Looks for another value than it is asked for."""

    def __call__(cls, value):
        return super().__call__(value + offset)


class Shifted(enum.Enum, metaclass=Looked):
    A = 2.0
    B = 3.0


class Lenient(enum.Enum):
    """Answers for values that it does not have."""

    A = 2.0
    B = 3.0

    @classmethod
    def _missing_(cls, value):
        return cls.A if offset == 1.0 else cls.B


class Marks(enum.Flag):
    A = 1
    B = 2


@program
def enum_of_a_value(x):
    return x * Colour(2.0).half + Marks(3).value + len(Marks(3)) + Lenient(3.0).value


@program
def enum_of_a_value_that_it_does_not_have(x):
    return x * Lenient("?").value


@program
def enum_whose_class_looks(x):
    return x * Shifted(1.0).value


@program
def enum_value(x):
    return x * Colour.RED.value


@program
def enum_inner_value(x):
    return x * Colour.RED._value_


@program
def enum_members(x):
    for member in Colour:
        x = x * member.value
    return x


@program
def enum_name(x):
    return x + len(Colour.BLUE.name)


@program
def enum_property(x):
    return x * Colour.BLUE.half


@program
def enum_item(x):
    return x * Colour["BLUE"].value


@program
def enum_int(x):
    return x * Number.TWO + Number.ONE.value


class Descriptor:
    def __init__(self, gain):
        self.gain = gain

    def __get__(self, instance, owner):
        return self.gain if instance is None else self.gain * instance.v


class Meta(type):
    scale = 2.0

    def scaled(cls, v):
        return v * cls.scale


class Described(metaclass=Meta):
    d = Descriptor(2.0)
    own = 1.0

    def __init__(self):
        self.v = 2.0
        self.f = abs

    @functools.cached_property
    def kept(self):
        return self.v * 3

    def method(self, v, k=1.0):
        return v * k * self.v


class Dynamic:
    def __init__(self):
        self.v = 2.0

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return 5.0


class Hooked:
    gain = 2.0

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


DESCRIBED, DYNAMIC, HOOKED = Described(), Dynamic(), Hooked()


@program
def descriptor(x):
    return x * DESCRIBED.d + Described.d


@program
def meta(x):
    return x * Described.scale + Described.scaled(1.0) + Described.own


@program
def cached(x):
    return x * Described().kept


@program
def shadowed(x):
    return DESCRIBED.method(x) + Described.method(DESCRIBED, x)


@program
def held_function(x):
    return DESCRIBED.f(x)


@program
def missing(x):
    return x * DYNAMIC.v + DYNAMIC.w


@program
def intercepted(x):
    return x * HOOKED.gain


@program
def asked(x):
    return x * getattr(BASE, "v") + getattr(BASE, "nothing", 1.0) + hasattr(BASE, "other") + hasattr(Base, "get")  # noqa: B009


@program
def getters(x):
    return x * operator.attrgetter("v")(BASE) + operator.itemgetter(1)(TABLE["b"]) + operator.methodcaller("get")(BASE)


PARTIAL = functools.partial(helper, k=3.0)
METHOD = BOTH.get
Pair = namedtuple("Pair", "a b", defaults=(2.0,))


class Typed(typing.NamedTuple):
    a: float
    b: float = 3.0


PAIR = Pair(1.0)


@program
def partial(x):
    return PARTIAL(x)


@program
def parts_of_partial(x):
    return x * PARTIAL.keywords["k"] + PARTIAL.func(1.0) + len(PARTIAL.args)


@program
def bound_method(x):
    return x * METHOD() + METHOD.__self__.v + len(METHOD.__name__) + len(METHOD.__func__.__name__)


@program
def defaults_of_method(x):
    return x * DESCRIBED.method.__defaults__[0] + Base.fixed.__defaults__[0]


@program
def named_tuples(x):
    return x * Pair(1.0).b + Typed(1.0).b + PAIR.a + len(Pair._fields) + Pair._field_defaults["b"]


K, KEY = 1, 3


@program
def deleted(x):
    rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    del rows[K]
    return x * rows[0] + rows[1]


@given(1)
def deleted_parts(x, k):
    rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    del rows[:k]
    del rows[slice(0, k)]
    operator.delitem(rows, k)
    rows.__delitem__(k)
    return x * rows[0] + len(rows)


@program
def deleted_key(x):
    table = {3: 1.0, 4: 2.0, 5: 4.0}
    del table[KEY]
    return x * sum(table.values())


@given(1, 1, 2.5, 2.5)
def identity(x, i, j, v, w):
    return x + (i is j) + 2 * (v is w) + 4 * operator.is_(i, v)


SPACE = types.SimpleNamespace(a=1.0, b=types.SimpleNamespace(c=2.0))
lazy = types.ModuleType("lazy")
lazy.present = 2.0
lazy.rate = {"gain": 2.0}


def _lazy_getattr(name, rate=lazy.rate):
    if name == "gain":
        return rate["gain"]
    raise AttributeError(name)


lazy.__getattr__ = _lazy_getattr


@program
def namespace(x):
    return x * SPACE.a + SPACE.b.c


@program
def module_attribute(x):
    return x * lazy.present


@program
def module_getattr(x):
    return x * lazy.gain


@program
def module_name(x):
    return x + len(lazy.__name__) + hasattr(lazy, "other")


DAYS, FLOAT, RECORD = np.timedelta64(5, "D"), np.float32(2.0), np.array([(1, 2.0)], dtype=[("a", "i8"), ("b", "f8")])[0]
SCALARS = [np.timedelta64(5, "D"), np.float64(1.5), np.int8(3), np.datetime64(3, "D")]
DTYPE = np.dtype("f4")


@program
def timedelta(x):
    return x + 1, DAYS + DAYS


@program
def scalars(x):
    return x * FLOAT + SCALARS[1], SCALARS[0], SCALARS[3]


@program
def record(x):
    return x + RECORD["a"]


@program
def dtype(x):
    return x.astype(DTYPE) * DTYPE.itemsize


class Shape(abc.ABC):
    sides = 3

    @abc.abstractmethod
    def area(self): ...


class Square(Shape):
    def __init__(self, a=2.0):
        self.a = a

    def area(self):
        return self.a * self.a

    def __call__(self, v, k=1.0):
        return v * self.a * k

    def __len__(self):
        return 4

    def __getitem__(self, k):
        return self.a + k

    def __eq__(self, other):
        return self.a == other.a

    __hash__ = None


SQUARE, OTHER = Square(), Square(3.0)


@program
def abstract(x):
    return x * SQUARE.area() + SQUARE.sides


@program
def instances(x):
    return x + isinstance(BOTH, Right) + isinstance(BASE, Left) + issubclass(Both, Right) + (type(BOTH) is Both)


@program
def bases_alone(x):
    return x + isinstance(LEFT, Base) + issubclass(Left, int | Base) + isinstance(CFG, Base) + callable(LEFT)


@program
def protocols(x):
    return SQUARE(x) + len(SQUARE) + SQUARE[1] + (SQUARE == OTHER)


@program
def truth(x):
    return x if BASE else -x


@program
def modules_names(x):
    return x * math.tau + math.sqrt(2.0) + np.pi + np.sqrt(x)


def decorated(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs) * 2.0

    return wrapper


@decorated
def inside(v, k=2.0):
    return v * k


@program
def wrapped(x):
    return inside(x) + inside.__wrapped__(x) + len(inside.__name__)


@given([1.0, 2, np.float32(3.0)], {"a": Point(1.0, 2.0)}, helper)
def arguments(x, rows, table, f):
    return f(x) + rows[0] + rows[2] + table["a"].norm()


@given(BOTH.get, Colour.RED, Base)
def given_by_name(x, method, colour, cls):
    return x * method() + colour.value + cls.z + cls().get()


class Error(Exception):
    code = 3.0


@program
def raised(x):
    try:
        raise Error(2.0)
    except Error as error:
        return x * error.code + error.args[0] + len(Error.__name__)


@program
def subclass_of_int(x):
    return x * Number.TWO + len(f"{helper.__name__}")


@program
def made_in_the_call(x):
    class Local(Base):
        gain = GAIN

        def get(self):
            return super().get() * self.gain

    return x * Local().get()


@program
def in_a_loop(x):
    s = 0.0
    for v in x:
        s += v * BOTH.get() + super(Both, BOTH).step
    return s


@program
def in_a_branch(x):
    if x[0] > 0:
        return x * Left.z + LEFT.get()
    return x * BASE.get()


class Bare:
    pass


class Slots:
    """One slot is empty, and the objects have a `__dict__`, too."""

    __slots__ = ("__dict__", "a", "b")

    def __init__(self):
        self.b = 2.0


class Guess:
    """A property that may raise, after which `__getattr__` is called."""

    def __init__(self):
        self.k = 2.0

    @property
    def a(self):
        return self.__dict__["held"]

    @property
    def b(self):
        return self.later + 1.0

    def __getattr__(self, name):
        return 5.0 + len(name)


class Asked(type):
    """A metaclass that is asked for what a class lacks."""

    def __getattr__(cls, name):
        LOG.append(name)
        return 4.0


class Known(metaclass=Asked):
    def __init__(self, v=1.0):
        self.v = v

    def __call__(self, x):
        return x * self.v

    def __iter__(self):
        return iter((self.v, 2.0))


def read_or(o, x):
    try:
        return x * o.a
    except AttributeError as error:
        return x - (2.0 if error.name == "a" else 1.0)


@given(Bare())
def an_attribute_that_may_be_missing(x, o):
    return read_or(o, x)


@given(Slots())
def a_slot_that_may_be_empty(x, o):
    return read_or(o, x) + o.b


@given(Slots())
def a_slot_that_may_be_empty_by_name(x, o):
    return x * getattr(o, "a", 7.0) + hasattr(o, "a")


@given(Bare(), Slots())
def an_attribute_that_is_tested(x, o, p):
    return x + sum(hasattr(v, "a") for v in (o, p)) + getattr(o, "q", 3.0)


@program
def an_attribute_of_a_function_that_may_be_missing(x):
    return read_or(read_or, x)


@given(Guess())
def what_getattr_makes_of_a_missing_attribute(x, o):
    return x * o.k + o.b + o.other


@given(Known(2.0))
def a_metaclass_that_is_asked(x, o):
    return o(x) + Known.missing + sum(o), o


class Empty:
    """A class without any special method."""


def each(uses, x):
    """The result of each use, or the class of the exception."""
    made = []
    for use in uses:
        try:
            made.append(use(x))
        except (TypeError, AttributeError) as error:
            made.append(type(error))
    return made


@given(Empty())
def a_class_that_comes_to_have_items(x, o):
    return each([lambda x: x * sum(o), lambda x: x + len(o), lambda x: x * o[1], lambda x: (2.0 in o, x + 1), lambda x: x if o else -x], x)


@given(Empty())
def a_class_that_comes_to_have_operators(x, o):
    return each([lambda x: o + x, lambda x: x.sum() + o, lambda x: x * float(o), lambda x: x[o], lambda x: o(x)], x)


@given(Empty())
def a_class_that_comes_to_be_entered(x, o):
    def enters(x):
        with o as v:
            return x * v

    return each([enters, lambda x: x + o.nothing], x)


@program
def a_name_that_may_be_missing(x):
    try:
        return x * NOTHING  # noqa: F821
    except NameError as error:
        return x + len(error.name)


class Weighed:
    __match_args__ = ("a", "b")
    weights = {0: 2.0, 1: 3.0}

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __class_getitem__(cls, key):
        return cls.weights[key]


@given(Weighed(1.0, 2.0))
def a_pattern_with_positions(x, o):
    match o:
        case Weighed(1.0, b):
            return x * b
        case Weighed(a, b):
            return x + a * b
    return x


@program
def an_item_of_a_class(x):
    return x * Weighed[0] + Weighed[1]


@program
def attributes_of_its_own(x):
    return x * attributes_of_its_own.gain + len(attributes_of_its_own.rows)


attributes_of_its_own.gain = 2.0
attributes_of_its_own.rows = [1.0]


@given(2)
def an_attribute_that_remembers(x, k):
    if not hasattr(an_attribute_that_remembers, "results"):
        an_attribute_that_remembers.results = {}
    if k not in an_attribute_that_remembers.results:
        an_attribute_that_remembers.results[k] = x.sum() * k
    return an_attribute_that_remembers.results[k], len(an_attribute_that_remembers.results)


KINDS, ERRORS = (int, complex), (ValueError, (KeyError, IndexError))


@given(3)
def kinds_of_a_value(x, k):
    return x * isinstance(k, KINDS) + issubclass(bool, KINDS) * 2


@given("gain")
def kinds_of_errors(x, key):
    def caught(read):
        try:
            return read(key)
        except ERRORS:
            return x + 1
        except (LookupError, TypeError, ValueError):
            return x + 2

    return caught({}.__getitem__) + caught([].__getitem__) + caught(int)


class Defaults:
    """Attributes that an object has only after a store."""

    k = 1.0
    rows = np.zeros(3)


@given(Defaults())
def stores_of_what_the_class_has(x, o):
    o.k = o.k
    o.rows += x
    return x * o.k


@given(Defaults())
def stores_that_undo_each_other(x, o):
    o.k += 1
    o.k -= 1
    return x * o.k


@given(Defaults())
def a_store_under_a_condition(x, o):
    if x.sum() > 3:
        o.k = o.k
    return x * o.k


SCALED, DOUBLED = np.vectorize(lambda v, k=2.0: v * k), np.vectorize(lambda v: v * 2.0, otypes=["f8"])
DOUBLED.otypes = [*DOUBLED.otypes]  # as NumPy 2.5 has them


@program
def attributes_of_a_vectorised_function(x):
    return SCALED(x), DOUBLED(x), DOUBLED(x + 1)


@program
def cells_of_a_function_that_the_call_makes(x):
    k = x.sum()

    def inner(v):
        return v * k

    return inner(x), inner.__closure__[0].cell_contents, len(inner.__closure__)


UNEQUAL = float("nan")  # found in a container because it is the same object


@given(UNEQUAL, {UNEQUAL: 2.0, 1.0: 3.0}, {UNEQUAL}, [UNEQUAL])
def a_key_that_equals_nothing(x, v, table, kept, rows):
    return x * table.get(v, 5.0), v in table, v in kept, v in rows, table.setdefault(v, 4.0)


class Body(enum.Enum):
    """Members with attributes of their own."""

    EARTH = (6.0, 2.0)
    MARS = (1.0, 4.0)

    def __init__(self, mass, radius):
        self.mass, self.radius, self.seen = mass, radius, 0

    @functools.cached_property
    def gravity(self):
        return self.mass / self.radius**2

    def pull(self, k=2.0):
        return self.gravity * k


@program
def attributes_of_the_members_of_an_enum(x):
    for body in Body:
        body.seen += 1
    heavy = [body for body in Body if body.mass > 2.0]
    return [x * body.pull() for body in Body], len(heavy), Body["MARS"].seen, hasattr(Body.EARTH, "name_of"), [body.pull.__name__ for body in heavy]
