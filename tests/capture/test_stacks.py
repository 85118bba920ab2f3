"""Lists that a loop pops from before it pushes anything. Stacks of numbers and of tuples are captured whole, and so are heaps
and searches in ordered lists. All give what Python gives, whatever they hold, however large they become, and if an empty one is popped."""

import bisect
import collections
import copy
import heapq

import numpy as np
import pytest
from breaks import after_an_effect
from test_regions import outcome, same

import cinductor

pytestmark = pytest.mark.filterwarnings("error:cinductor")
RNG = np.random.default_rng(0)
X = [RNG.random(40), RNG.random(40), np.zeros(40), np.ones(40)]
IMAGE = (RNG.random((9, 11)) > 0.35).astype(int)
ENDS = np.cumsum([0, *RNG.integers(0, 5, 30)])
NEXT = RNG.integers(0, 30, ENDS[-1])


def flood_fill(image, y, x):
    h, w = image.shape
    out = np.zeros_like(image)
    stack = [(y, x)]
    while stack:
        i, j = stack.pop()
        if i < 0 or j < 0 or i >= h or j >= w or out[i, j] != 0 or image[i, j] != 1:
            continue
        out[i, j] = 1
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            stack.append((i + di, j + dj))
    return out


def depth_first(ends, following, start):
    seen = np.zeros(len(ends) - 1, bool)
    order = []
    stack = [start]
    while stack:
        v = stack.pop()
        if seen[v]:
            continue
        seen[v] = True
        order.append(v)
        for k in range(ends[v], ends[v + 1]):
            if not seen[following[k]]:
                stack.append(int(following[k]))
    return order, seen


def quicksort(a):
    stack = [(0, len(a) - 1)]
    while stack:
        low, high = stack.pop()
        if low >= high:
            continue
        i = low
        for j in range(low, high):
            if a[j] < a[high]:
                a[i], a[j] = float(a[j]), float(a[i])
                i += 1
        a[i], a[high] = float(a[high]), float(a[i])
        stack.append((low, i - 1))
        stack.append((i + 1, high))
    return a


def simplified_line(points, eps):
    n = len(points)
    kept = np.zeros(n, bool)
    kept[0] = kept[n - 1] = True
    stack = [(0, n - 1)]
    while stack:
        a, b = stack.pop()
        most, at = -1.0, -1
        for k in range(a + 1, b):
            d = abs((points[b, 0] - points[a, 0]) * (points[a, 1] - points[k, 1]) - (points[a, 0] - points[k, 0]) * (points[b, 1] - points[a, 1]))
            if d > most:
                most, at = d, k
        if most > eps:
            kept[at] = True
            stack.append((a, at))
            stack.append((at, b))
    return kept


def what_is_left(x, n=12):
    stack, s = [1, 2, n], 0.0
    while len(stack) > 1:
        k = stack.pop()
        s += x[k]
        if x[k] > 0.9 and k > 0:
            stack.append(k // 2)
    return s, stack, len(stack)


def pops_in_a_for(x):
    left, s = [5, 4, 3, 2, 1] * 4, 0.0
    for i in range(len(x) // 4):
        k = left.pop()
        if x[k] > 0.1:
            s += x[k] * i
    return s, left


def of_two_names(x):
    stack, s = [3], 0
    other = stack
    while stack:
        k = stack.pop()
        s += len(other)
        if x[k] > 0.3 and k < 20:
            other.append(k + 1)
    return s, other is stack, other


def numbers_of_numpys(x):
    stack, s = [x[0]], 0.0
    while stack:
        v = stack.pop()
        s += v
        if v < 3:
            stack.append(v + x[1] + 0.1)
    return s


def flags_in_tuples(x):
    stack, s = [(0, True)], 0.0
    while stack:
        k, is_up = stack.pop()
        s = s + x[k] if is_up else s - x[k]
        if k < 30:
            stack.append((k + 1, bool(x[k] > 0.5)))
    return s


def shortest_ways(weights, start):
    far = np.full(len(weights), np.inf)
    far[start] = 0.0
    heap = [(0.0, start)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > far[u]:
            continue
        for v in range(len(weights)):
            if weights[u, v] > 0 and d + weights[u, v] < far[v]:
                far[v] = d + weights[u, v]
                heapq.heappush(heap, (far[v], v))
    return far


def by_heap(x):
    heap, out = [], np.empty(len(x))
    for v in x:
        heapq.heappush(heap, v)
    for i in range(len(x)):
        out[i] = heapq.heappop(heap)
    return out


def largest(x):
    heap = [x[0], x[1], x[2], x[3]]
    heapq.heapify(heap)
    out = 0.0
    for i in range(4, len(x)):
        out += heapq.heappushpop(heap, x[i])
        if x[i] > 0.9:
            out += heapq.heapreplace(heap, x[i] / 2)
    return out, heap


def longest_increasing(x):
    tails = []
    for v in x:
        i = bisect.bisect_left(tails, v)
        if i == len(tails):
            tails.append(v)
        else:
            tails[i] = v
    return len(tails)


def searched(x):
    edges, out = np.sort(x[::3]), np.zeros(len(x), int)
    for i in range(len(x)):
        out[i] = 100 * bisect.bisect(edges, x[i]) + bisect.bisect_left(edges, x[i], 2, hi=9)
    return out


def ordered_pairs(x):
    """Equal first items, ints and floats, tuples of tuples."""
    low, n = (x[0], 0), 0
    for i in range(len(x)):
        if (x[i], i) < low:
            low = (x[i], i)
        if (x[i] > 0.5, i % 3) >= (x[i - 1] > 0.5, i % 2):
            n += 1
        if (i // 4, (i % 2, x[i])) != (i // 4, (i % 3, x[i])):
            n += 10
    return low, n


def parts_in_order(x):
    """Sums of lists whose lengths data decide: of names, of three, of a display, of tuples; and one that is read again."""
    low, equal, high, pairs, others = [], [], [], [(-1, 0.5)], []
    for i in range(len(x)):
        v = float(x[i])
        if v < 0.4:
            low.append(v)
            pairs.append((i, v))
        elif v == 1.0:
            equal.append(v)
        else:
            high.append(v)
            others.append((i, v))
    both, total = high + low, 0.0
    for v in both:
        total += v
    return low + equal + high, (low + high) + [0.5], total, len(both + low), pairs + others


WAYS = [((RNG.random((n, n)) * (RNG.random((n, n)) < share)).round(1), 0) for n, share in ((9, 0.4), (9, 0.3), (6, 0.9))]
CASES = [
    (shortest_ways, WAYS),
    *((f, [(x,) for x in X]) for f in (by_heap, largest, longest_increasing, searched, ordered_pairs)),
    (flood_fill, [(IMAGE, 0, 0), (IMAGE, 4, 5), (IMAGE[:5, :8].copy(), 2, 2), (np.ones((3, 3), int), 1, 1)]),
    (depth_first, [(ENDS, NEXT, start) for start in (0, 3, 29, 3)]),
    (quicksort, [(RNG.random(n),) for n in (30, 30, 1, 0, 2, 50)]),
    (simplified_line, [(RNG.random((n, 2)), eps) for n, eps in ((30, 0.1), (30, 0.01), (50, 0.05))]),
    *((f, [(x,) for x in X]) for f in (what_is_left, pops_in_a_for, parts_in_order, of_two_names, numbers_of_numpys, flags_in_tuples)),
]


def agree(compiled, fn, args):
    ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
    same(outcome(compiled, ours), outcome(fn, theirs))
    same(ours, theirs)


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize(("fn", "calls"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_is_captured_whole(fn, calls, dynamic):
    compiled = cinductor.compile(fn, backend="interp", fullgraph=True, dynamic=dynamic)
    for args in calls:
        for _ in range(2):
            agree(compiled, fn, args)


def is_popped_empty(x):
    stack, n = [3], 0
    while n < 100:
        k = stack.pop()
        n += 1
        if x[k] > 0.2 and k < 30:
            stack.append(k + 1)
    return n


def is_popped_empty_and_told(x):
    stack, n = [3], 0
    while True:
        try:
            k = stack.pop()
        except IndexError:
            return n
        n += 1
        if x[k] > 0.2 and k < 30:
            stack.append(k + 1)


def becomes_large(x):
    stack, n = [0], 0
    while stack:
        k = stack.pop()
        n += 1
        if k < 9000 and x[k % 40] >= 0:
            stack.append(k + 1)
            stack.append(k + 1)
        if n > 9500:
            break
    return n, len(stack)


def of_several_types(x):
    stack, s = [3, 4.5], 0.0
    while stack:
        k = stack.pop()
        s += k
        if x[int(k)] > 0.5 and k < 20:
            stack.append(k + 1)
    return s


def of_arrays(x):
    stack, s = [x, x * 2], 0.0
    while stack:
        v = stack.pop()
        if v[0] < 3:
            s += v.sum()
    return s


def sums_of_other_lists(x):
    """Lists whose items are of two types, and sums with what is no list; the truth and the equality of a sum."""
    low, places = [], []
    for i in range(len(x)):
        if x[i] < 0.4:
            low.append(float(x[i]))
        else:
            places.append(i)
    found = [low + places, places + [1.5], low * 2, bool(low + places), not (low + low), places + low == low + places]
    if low + low:
        found.append("some")
    for other in ((1,), None, np.arange(len(low))):
        try:
            found.append(low + other)
        except (TypeError, ValueError) as error:
            found.append(str(error))
    return found


def of_texts(x):
    stack, s = ["a", "b", "ab"] * 5, 0.0
    while stack:
        s += x[len(stack.pop())]
    return s


def of_the_callers(x, stack=None):
    stack, s = [3, 5] if stack is None else stack, 0.0
    while stack:
        k = stack.pop()
        s += x[k]
        if x[k] > 0.5 and k < 20:
            stack.append(k + 1)
    return s


def from_the_front(x):
    queue, s = [3, 5], 0.0
    while queue:
        k = queue.pop(0)
        s += x[k]
        if x[k] > 0.5 and k < 20:
            queue.append(k + 1)
    return s


def under_a_condition(x):
    stack, s = list(range(20)), 0.0
    for i in range(30):
        if stack and x[i] > 0.3:
            s += x[stack.pop()]
    return s, stack


def alongside_another(x):
    stack, other, s = [0, 5], [3.0], 0.0
    while stack:
        k = stack.pop()
        if x[k] > 0.5:
            other.append(x[k] * 1.0)
        if k < 20 and x[k] < 0.8:
            stack.append(k + 3)
        s += x[k]
    return s, other


def in_a_loop(x):
    n = 0
    for r in range(len(x) // 4):
        stack = [r]
        while stack:
            k = stack.pop()
            n += 1
            if x[k] > 0.4 and 2 * k + 2 < len(x):
                stack.append(2 * k + 1)
                stack.append(2 * k + 2)
    return n


def held_by_a_list(x):
    held, s = [[1, 2, 3]], 0.0
    while held[0]:
        k = held[0].pop()
        s += x[k]
        if x[k] > 0.7 and k < 30:
            held[0].append(k + 4)
    return s, held


def heap_popped_empty(x):
    heap = [(x[0], 0)]
    for i in range(len(x)):
        d, k = heapq.heappop(heap)
        if d < 0.6:
            heapq.heappush(heap, (x[i], k + 1))
    return heap


def search_from_before_the_list(x):
    found = 0
    for i in range(len(x)):
        found += bisect.bisect_right(x, 0.5, int(10 * x[i]) - 1)
    return found


def put_in_order(x):
    made = []
    for v in x:
        bisect.insort(made, v)
    return made, bisect.bisect(made, -0.5, key=lambda v: -v)


def pairs_with_nan(x):
    y = np.where(x > 0.5, np.nan, x)
    n = 0
    for i in range(len(y)):
        v = y[i]
        n += (v, 1) < (v, 2)
        n += 10 * ((y[i], 1) < (y[i], 2))
    return n


def deque_popped_empty(x):
    waiting, s = collections.deque([1.0]), 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += 1
        else:
            s += waiting.popleft()
    return s


OTHERS = [
    *(heap_popped_empty, search_from_before_the_list, put_in_order, pairs_with_nan),
    *(is_popped_empty, is_popped_empty_and_told, becomes_large, of_several_types, of_arrays, of_texts, sums_of_other_lists, of_the_callers),
    *(deque_popped_empty, from_the_front, under_a_condition, alongside_another, in_a_loop, held_by_a_list),
]


@pytest.mark.parametrize("setting", ["dynamic", "plain", "after an effect"])
@pytest.mark.parametrize("fn", OTHERS)
def test_is_pythons(fn, setting):
    captured = after_an_effect(fn) if setting == "after an effect" else fn
    compiled = cinductor.compile(captured, backend="interp", dynamic=setting == "dynamic" or None)
    for x in X:
        for _ in range(2):
            agree(compiled, fn, (x,))
    if fn is of_the_callers:
        for x in X:
            agree(compiled, fn, (x, [1, 2]))


def test_a_stack_of_many_items_is_captured_whole():
    """In 200 x 200 elements the stack has over 60,000 pairs; a call that fails a check runs in NumPy each time."""
    image = np.ones((200, 200), int)
    report = cinductor.explain(cinductor.compile(flood_fill), image, 100, 100)
    assert "compiled whole" in str(report)
    same(report.result, flood_fill(image, 100, 100))


def until(n, x):
    stack = [1]
    while len(stack) < n:
        stack.append(int(x[len(stack) % 40] > 0.5))
    return len(stack), stack[-1]


def test_a_list_beyond_its_capacity_is_pythons_and_the_reason_names_no_symbol():
    report = cinductor.explain(cinductor.compile(until), 1_200_000, X[0])
    assert report.result == until(1_200_000, X[0])
    assert "a check failed: the data are beyond what the program was compiled for" in str(report)
