"""Tests recordings (option `graphs`) on the dummy device. Run by test_devices.py like check_dummy.py.

Programs are compiled with fusion=False so that there are several launches to record.
"""

import ctypes
import gc
import threading
import warnings

import cinductor_dummy as dummy
import numpy as np
import pytest
import test_programs
from check_dummy import ALWAYS, DEVICE, PROGRAMS, Card, as_it_was  # noqa: F401

import cinductor
from cinductor.diagnosis.stats_types import programs_of

GRAPHS = {**ALWAYS, "graphs": True, "fusion": False}
SOME = list(PROGRAMS)[::6]
MOST = 16  # recordings kept per partition


def several(x, y, s=2.0):
    """Kernels that depend on each other, several results, and one intermediate array."""
    a = np.sqrt(x * x) * s
    b = a.cumsum(axis=0) + y
    return b - a, b.sum(axis=1), a[1:] * 3


def given():
    random = np.random.default_rng(1)
    return random.random((6, 8)), random.random((6, 8))


def recorded(fn=several, **options):
    return cinductor.compile(fn, device=DEVICE, options={**GRAPHS, **options})


def on_gpu(*arrays, card=DEVICE):
    return [cinductor.to_device(a, card) for a in arrays]


def numbers(results):
    return [r.numpy().copy() for r in results]


def same(got, want):
    return len(got) == len(want) and all(np.array_equal(g, w) for g, w in zip(got, want))


def replays_of(f):
    return sum(part["replayed"] for program in programs_of(f) for part in program.recordings)


def counted(name, call, *args):
    before = dummy.counts()[name]
    result = call(*args)
    return dummy.counts()[name] - before, result


def test_the_second_call_is_recorded_and_later_ones_are_replayed():
    f, (x, y) = recorded(verify=True), given()
    want, arrays = several(x, y), on_gpu(x, y)
    dummy.set_delay(200)
    for number in range(5):
        launches, got = counted("launch", f, *arrays)
        assert (launches > 2) == (number < 2), (number, launches)
        assert same(numbers(got), want)
    assert dummy.counts()["recordings"] == 1
    taken, _ = counted("allocate", f, *arrays)
    assert taken == 3  # the results
    report = cinductor.explain(f, *arrays)
    assert report.recordings == ["p0: 5 launches, replayed in 6 of 7 runs"] and report.recordings[0] in str(report)
    assert replays_of(f) == 6 and cinductor.stats()["functions"][f._cinductor_job.name]["replayed"] >= 6
    del f, report, got
    gc.collect()
    assert dummy.counts()["recordings"] == 0


@pytest.mark.parametrize("limit", [1, 100, 1000000])
def test_results_are_never_written_again(limit):
    """Small results are copied from the recording's buffer; large ones are stored directly in new memory."""
    f, (x, y) = recorded(choices=f"recorded_copy={limit}"), given()
    a, b = on_gpu(x, y)
    kept = [f(a, b, 2.0) for _ in range(20)]
    a[...] = cinductor.to_device(x + 1, DEVICE)
    replays, later = counted("replay", lambda: [f(a, b, 2.0) for _ in range(20)])
    assert replays >= (18 if limit == 1000000 else 0)
    assert all(same(numbers(got), several(x, y)) for got in kept)
    assert all(same(numbers(got), several(x + 1, y)) for got in later)


def test_what_differs_between_calls():
    """Contents, numbers, sizes and addresses change in any order: each call has its own results."""
    random = np.random.default_rng(3)
    f = recorded()
    pairs = [on_gpu(np.arange(8.0 * n).reshape(n, 8), np.ones((n, 8))) for n in (5, 6, 7) for _ in range(2)]
    for number in range(120):
        a, b = pairs[random.integers(len(pairs))]
        s = float(random.integers(3))
        if number % 7 == 0:
            a[0] = number
        got = f(a, b, s)
        assert same(numbers(got), several(a.numpy(), b.numpy(), s)), number
    assert replays_of(f) > 10


def test_arguments_that_are_written():
    def step(w, g, rate):
        v = np.sqrt(g * g) * rate
        w -= v.cumsum(axis=0)
        return w.sum(axis=0), v

    f, (w, g) = recorded(step), (np.ones((6, 8)), np.arange(48.0).reshape(6, 8))
    a, b = on_gpu(w, g)
    for _ in range(6):
        got, want = f(a, b, 0.5), step(w, g, 0.5)
        assert same(numbers(got), want) and np.array_equal(a.numpy(), w)
    assert replays_of(f) >= 5


@pytest.mark.parametrize("limit", [100, 1000000])
def test_arguments_that_move(limit):
    """A loop with a new array for each call replays, if the array is small; arrays that it had before keep their contents."""
    f, (x, y) = recorded(choices=f"recorded_copy={limit}", verify=True), given()
    b, kept = on_gpu(y)[0], []
    for k in range(12):
        a = on_gpu(x + k)[0]
        kept.append((a, f(a, b, 2.0)))
    for k, (a, got) in enumerate(kept):
        assert same(numbers(got), several(x + k, y)) and np.array_equal(a.numpy(), x + k), k
    assert replays_of(f) == (9 if limit > 100 else 0)
    told = cinductor.explain(f, kept[0][0], b).recordings[0]
    assert ("1 of its arguments copied" in told) == (limit > 100), told
    for _ in range(4):  # both move, one is a view, and memory is used again
        rows = on_gpu(np.concatenate([x, x + 1]))[0]
        a, b = rows[6:], on_gpu(y)[0]
        assert same(numbers(f(a, b, 2.0)), several(x + 1, y))
        assert same(numbers(f(b, b, 2.0)), several(y, y))


def test_an_argument_that_is_written_stays_where_it_is():
    def step(w, g):
        v = np.sqrt(g * g) * 0.5
        w -= v.cumsum(axis=0)
        return w.sum(axis=0), v

    f, kept = recorded(step), []
    for k in range(8):
        w, g = np.ones((6, 8)) + k, np.arange(48.0).reshape(6, 8) * k
        a, b = on_gpu(w, g)
        got, want = f(a, b), step(w, g)
        kept.append((a, b))
        assert same(numbers(got), want) and np.array_equal(a.numpy(), w)


def test_recordings_are_bounded():
    """Numbers that occur once are not recorded. Of those that occur often, the latest recordings are kept."""
    f, (x, y) = recorded(), given()
    a, b = on_gpu(x, y)
    live = dummy.counts()["live"]
    for _ in range(2):
        for k in range(40):
            assert same(numbers(f(a, b, float(k))), several(x, y, float(k)))
    assert dummy.counts()["recordings"] == 0
    for k in range(40):
        for _ in range(3):
            assert same(numbers(f(a, b, float(k))), several(x, y, float(k)))
    gc.collect()
    cinductor.synchronize(DEVICE)
    assert dummy.counts()["recordings"] == MOST
    assert dummy.counts()["live"] <= live + 12  # they share their memory
    f(a, b, 39.0)
    assert dummy.counts()["recordings"] == MOST


def test_a_loop_around_kernels_is_recorded_iteration_by_iteration():
    def steps(x, y):
        for i in range(1, 5):
            x = np.sqrt(x * x + i).cumsum(axis=0) / (y + 1).sum(axis=0)
            y = np.linalg.inv(np.eye(8) + y[:1]) + i
        return x, y

    x, y = given()
    f, want = recorded(steps), cinductor.compile(steps, device=DEVICE, options={**ALWAYS, "fusion": False})
    arrays = on_gpu(x, np.ones((8, 8)))
    expected = numbers(want(*arrays))
    for _ in range(4):
        assert same(numbers(f(*arrays)), expected)
    report = cinductor.explain(f, *arrays)
    assert len(report.recordings) > 1, report.text("partitions")


def test_what_is_not_recorded_says_why():
    x, y = given()
    a, b = on_gpu(x, y)

    def why(fn, *args, **options):
        return cinductor.explain(recorded(fn, **options), *args).recordings

    assert "less than 2 launches" in why(lambda a: a + 1, a)[0]
    assert "less than 7 launches" in why(several, a, b, choices="recorded_launches=7")[0]
    assert "watched" in why(several, a, b, track_memory="log")[0]
    assert why(several, a, b, graphs=False) == []
    plain = cinductor.explain(cinductor.compile(several, options={"graphs": True, "fusion": False}), x, y)
    assert plain.recordings == ["p0: 5 launches, replayed in 0 of 0 runs; not recorded: device 'cpu' does not record"]


def test_streams_have_recordings_of_their_own():
    f, (x, y) = recorded(), given()
    want, (a, b) = several(x, y), on_gpu(x, y)
    cinductor.synchronize(DEVICE)
    first, second = cinductor.Stream(DEVICE), cinductor.Stream(DEVICE)
    dummy.set_delay(300)
    kept = []
    for _ in range(5):
        for stream in (first, second):
            with stream:
                kept.append(f(a, b))
    dummy.set_delay(0)
    assert all(same(numbers(got), want) for got in kept)
    assert dummy.counts()["recordings"] == 2
    del first, second, stream
    gc.collect()
    for k in range(40):  # recordings of the streams are dropped, although the streams are closed
        for _ in range(2):
            f(a, b, float(k))
    cinductor.synchronize(DEVICE)
    assert dummy.counts()["recordings"] == MOST


@pytest.mark.parametrize("delay", [0, 50])
def test_threads_in_one_function(delay):
    """With different arrays and with the same ones, on one stream and on several."""
    f, (x, y) = recorded(), given()
    a, b = on_gpu(x, y)
    cinductor.synchronize(DEVICE)
    dummy.set_delay(delay)
    wrong = []

    def work(number):
        own = on_gpu(x + number, y) if number % 2 else (a, b)
        want = several(x + number % 2 * number, y, 2.0)
        with cinductor.Stream(DEVICE) if number > 2 else cinductor.device(DEVICE):
            for _ in range(25):
                got = f(*own, 2.0)
                if not same(numbers(got), want):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert replays_of(f) > 50


def test_threads_whose_recordings_share_memory():
    """Several threads on one stream without the GIL, each with another number: no thread copies results that another
    has stored.
    """
    x, y = np.random.default_rng(2).random((2, 800, 50))
    f, (a, b) = recorded(), on_gpu(x, y)
    wrong = []

    def work(s):
        want = several(x, y, s)[1]
        kept = [f(a, b, s)[1] for _ in range(200)]
        wrong.extend(s for got in kept if not np.array_equal(got.numpy(), want))

    threads = [threading.Thread(target=work, args=(float(s),)) for s in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and replays_of(f) > 50


def test_both_cards_record():
    def both(a, b):
        p = np.sqrt(a * a).cumsum(axis=0)
        q = np.sqrt(b * b).cumsum(axis=0)
        return p * 2, q + 1

    x, y = given()
    a, b = cinductor.to_device(x, "dummy"), cinductor.to_device(y, "dummy:1")
    f = cinductor.compile(both, options={**GRAPHS, "choices": "recorded_launches=1"})
    for _ in range(4):
        assert same(numbers(f(a, b)), both(x, y))
    assert len(cinductor.explain(f, a, b).recordings) > 1
    assert replays_of(f) >= 4


@pytest.mark.parametrize("name", ["record_begin", "record_end", "replay", "launch"])
def test_a_device_that_fails_at_recording(name):
    """One warning, then launches with the same results. If these fail too, their error is raised."""
    f, (x, y) = recorded(), given()
    want, (a, b) = several(x, y), on_gpu(x, y)
    f(a, b)
    if name == "replay":
        f(a, b)
    dummy.set_failing(name)
    if name == "launch":
        with pytest.raises(cinductor.DeviceError, match="told to fail in launch"):
            f(a, b)
    else:
        with pytest.warns(cinductor.CinductorWarning, match=f"{name} of device 'dummy' failed: the dummy was told to fail"):
            got = f(a, b)
        assert same(numbers(got), want)
    dummy.set_failing(None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(same(numbers(f(a, b)), want) for _ in range(3))
    assert dummy.counts()["recordings"] == 0
    assert f"{name}" in cinductor.explain(f, a, b).recordings[0]


def test_each_call_fails_in_turn():
    """Let each call of recording, replaying and copying fail in turn: results are right, and nothing leaks."""
    x, y = given()
    want = several(x, y)

    def everything():
        f, (a, b) = recorded(), on_gpu(x, y)
        return [numbers(f(a, b)) for _ in range(4)]

    everything()
    began = sum(dummy.counts()[name] for name in dummy.counts() if name not in ("live", "handles", "recordings"))
    everything()
    gc.collect()
    calls = sum(dummy.counts()[name] for name in dummy.counts() if name not in ("live", "handles", "recordings")) - began
    raised = 0
    for number in range(calls):
        dummy.set_failing_after(number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                assert all(same(got, want) for got in everything()), number
            except (cinductor.DeviceError, MemoryError) as error:
                raised += 1
                del error
        dummy.set_failing_after(-1)
        gc.collect()
        cinductor.synchronize(DEVICE)
        counts = dummy.counts()
        assert counts["live"] == counts["handles"] == counts["recordings"] == 0, (number, counts)
    assert 4 < raised < calls


def test_memory_that_there_is_not_is_no_reason_to_fail():
    """A recording allocates memory. If that fails, launches are made instead."""
    x, y = np.ones((64, 64)), np.ones((64, 64))
    f, (a, b) = recorded(), on_gpu(x, y)
    want = several(x, y)
    f(a, b)
    gc.collect()
    cinductor.synchronize(DEVICE)
    used = cinductor.memory_stats(DEVICE)["allocated"]
    cinductor.configure_memory(f"limit:{used + 5 * x.nbytes}", DEVICE)
    try:
        for _ in range(3):
            assert same(numbers(f(a, b)), want)
        assert dummy.counts()["recordings"] == 0
    finally:
        cinductor.configure_memory("limit:0", DEVICE)
    assert same(numbers(f(a, b)), want)


def test_programs_have_the_same_bits():
    """Three calls with and without graphs; the results of each call are separate arrays."""

    def outcomes(program, graphs):
        n = sorted(program.sizes)[0]
        options = {**ALWAYS, "graphs": graphs, "choices": "recorded_launches=1"}
        function = cinductor.compile(program.function, device=DEVICE, backend="interp", options=options)
        made = []
        for _ in range(3):
            arguments = program.make(n, np.random.default_rng(n))
            made.append((*test_programs.outcome(function, arguments), arguments))
        return made

    def replay_all():
        for name in SOME:
            for got, want in zip(outcomes(PROGRAMS[name], True), outcomes(PROGRAMS[name], False), strict=True):
                assert got[1] == want[1], name
                test_programs.assert_same(got[0], want[0], 0, name)
                test_programs.assert_same(got[2], want[2], 0, name)

    replays, _ = counted("replay", replay_all)
    assert replays > 50, replays


# --- devices of Python ----------------------------------------------------------------------------


class Recorder(Card):
    """A device whose streams and recordings are numbers; `failing` names the method that raises."""

    name, doc = "recorder", "memory of ctypes, and a list of what was asked"

    def __init__(self):
        super().__init__()
        self.number, self.streams, self.recordings, self.failing = 1 << 40, set(), set(), None
        self.calls = self.countdown = 0

    def ask(self, name):
        self.log.append(name)
        self.calls += 1
        self.countdown -= 1
        if self.failing == name or self.countdown == 0:
            raise RuntimeError(f"{name} raised")

    def new(self, numbers):
        self.number += 64
        numbers.add(self.number)
        return self.number

    def allocate(self, index, size, stream):
        self.ask("allocate")
        return super().allocate(index, size, stream)

    def launch(self, index, kernel, stream):
        self.ask("launch" if stream is None else "launch to be kept")
        assert stream is None or stream in self.streams

    def copy_in(self, index, address, host, stream):
        self.ask("copy_in")
        super().copy_in(index, address, host, stream)

    def copy_out(self, index, address, host, stream):
        self.ask("copy_out")
        super().copy_out(index, address, host, stream)

    def copy_across(self, index, there, from_index, here, size, stream):
        self.ask("copy_across")
        ctypes.memmove(there, here, size)

    def record_begin(self, index, stream):
        self.ask("record_begin")
        return self.new(self.streams)

    def record_end(self, index, stream):
        self.streams.remove(stream)
        self.ask("record_end")
        return self.new(self.recordings)

    def replay(self, index, recording, stream):
        assert recording in self.recordings and stream is None
        self.ask("replay")

    def record_close(self, index, recording):
        self.recordings.remove(recording)
        self.ask("record_close")


RECORDER = Recorder()
NOTED = ("launch", "record_begin", "record_end", "replay")
cinductor.register_device(RECORDER)


@pytest.fixture
def recorder():
    yield RECORDER
    RECORDER.failing, RECORDER.countdown = None, 0
    gc.collect()
    assert not RECORDER.blocks and not RECORDER.recordings and not RECORDER.streams


def on_recorder(*arrays):
    return [cinductor.to_device(a, "recorder") for a in arrays]


def recorded_there():
    return cinductor.compile(several, device="recorder", options=GRAPHS)


def test_a_device_of_python_records(recorder):
    f, (x, y) = recorded_there(), given()
    a, b = on_recorder(x, y)
    asked = []
    for number in range(5):
        recorder.log.clear()
        assert same(numbers(f(a, b)), several(x, y)), number
        asked.append([name for name in recorder.log if name.split(" ")[0] in NOTED])
    assert asked[0] == ["launch"] * 5
    assert asked[1] == ["record_begin", *["launch to be kept"] * 5, "record_end", "replay"]
    assert asked[2:] == [["replay"]] * 3
    a[0] = 3
    assert same(numbers(f(a, b)), several(a.numpy(), y))
    assert cinductor.explain(f, a, b).recordings == ["p0: 5 launches, replayed in 6 of 7 runs"]


@pytest.mark.parametrize("name", ["record_begin", "launch to be kept", "record_end", "replay", "record_close"])
def test_a_method_of_recordings_raises(recorder, name):
    """One warning, then launches with the same results, and nothing leaks. Errors of record_close are ignored."""
    f, (x, y) = recorded_there(), given()
    want, (a, b) = several(x, y), on_recorder(x, y)
    f(a, b)
    recorder.failing = name
    said = "launch, while recording," if name == "launch to be kept" else name
    if name == "record_close":
        assert same(numbers(f(a, b)), want)
    else:
        with pytest.warns(cinductor.CinductorWarning, match=f"{said} of device 'recorder' failed: .*{name} raised") as seen:
            assert same(numbers(f(a, b)), want)
        assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(same(numbers(f(a, b)), want) for _ in range(3))


def test_each_call_of_a_device_of_python_fails_in_turn(recorder):
    x, y = given()
    want = several(x, y)

    def everything():
        f, (a, b) = recorded_there(), on_recorder(x, y)
        return [numbers(f(a, b)) for _ in range(4)]

    everything()
    began = recorder.calls
    everything()
    gc.collect()
    raised = 0
    for number in range(1, recorder.calls - began + 1):
        recorder.countdown = number
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                assert all(same(got, want) for got in everything()), number
            except (cinductor.DeviceError, MemoryError) as error:
                raised += 1
                del error
        recorder.countdown = 0
        gc.collect()
        assert not recorder.blocks and not recorder.recordings and not recorder.streams, number
    assert 4 < raised < number


def test_streams_of_recordings_are_new_ones(recorder):
    class Same(Recorder):
        name = "same"

        def record_begin(self, index, stream):
            return 0

    cinductor.register_device(Same())
    f, (x, y) = cinductor.compile(several, device="same", options=GRAPHS), given()
    a, b = (cinductor.to_device(v, "same") for v in (x, y))
    f(a, b)
    with pytest.warns(cinductor.CinductorWarning, match="record_begin gave a stream that is no new one"):
        assert same(numbers(f(a, b)), several(x, y))
