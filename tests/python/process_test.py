"""Errors, threads, fork and interrupts."""
import builtins
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import stipple
from stipple import ops

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def documented():
    with open(os.path.join(ROOT, "docs", "errors.md"), encoding="utf-8") as file:
        return re.findall(r"^\| `(\w+)` \| +(\d+) \| `([\w.]+)` \| (?:`(\w+)`)? *\|", file.read(), re.M)


def test_classes_are_those_of_the_documentation():
    rows = documented()
    assert len(rows) == 13
    for _code, _status, name, base in rows:
        if not name.startswith("stipple."):
            assert hasattr(builtins, name) and not base
            continue
        class_ = getattr(stipple, name[8:])
        assert class_.__mro__[1] is stipple.Error and issubclass(class_, getattr(builtins, base))
        assert f"{class_.__module__}.{class_.__name__}" == name
    bound = {n for n in stipple.__all__ if isinstance(getattr(stipple, n), type) and issubclass(getattr(stipple, n), Exception)}
    assert bound == {name[8:] for _, _, name, _ in rows if name.startswith("stipple.")} | {"Error"}


def test_errors_carry_code_place_and_hint(cloud):
    with pytest.raises(ValueError) as raised:
        ops.farthest_point_sample(cloud, 101)
    error = raised.value
    assert isinstance(error, stipple.ArgumentError) and isinstance(error, stipple.Error)
    assert (error.code, error.place, error.hint) == ("bad_argument", None, None)
    with pytest.raises(stipple.DeviceError) as raised:
        stipple.asarray(cloud, device="cuda:63")
    assert raised.value.code == "no_device" and isinstance(raised.value, RuntimeError)


def test_other_threads_go_on_while_work_runs():
    points = np.random.default_rng(0).random((2000, 3), dtype=np.float32)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    ops.emd_exact(points, np.ascontiguousarray(points[::-1]) + np.float32(0.1))
    during = len(ticks) - before
    done.set()
    thread.join()
    assert during >= 3


def test_many_threads_may_call_at_once(cloud):
    expected, failures = ops.knn(cloud, 4).indices, []

    def work():
        for _ in range(200):
            if not np.array_equal(ops.knn(cloud, 4).indices, expected):
                failures.append(1)
            try:
                ops.knn(cloud, 1000)
                failures.append(1)
            except ValueError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_results_do_not_depend_on_threads():
    points = np.random.default_rng(0).random((20000, 3), dtype=np.float32)
    results = []
    for count in (1, 3, 0):
        stipple.set_threads(count)
        results.append(ops.chamfer(points, points[::2].copy()))
    assert results[0].a_to_b.mean == results[1].a_to_b.mean == results[2].a_to_b.mean
    with pytest.raises(stipple.ArgumentError):
        stipple.set_threads(-1)


FORK = """
import multiprocessing, numpy as np, stipple
from stipple import ops
points = np.random.default_rng(0).random((50000, 3), dtype=np.float32)
stipple.set_threads(4)
expected = ops.knn(points, 8).indices          # the parent has used its threads
def work(i):
    assert stipple.threads() == 1
    try:
        stipple.set_threads(2)
        return False
    except stipple.ArgumentError:
        pass
    return np.array_equal(ops.knn(points, 8).indices, expected)
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert all(pool.map(work, range(4)))
    assert stipple.threads() == 4 and np.array_equal(ops.knn(points, 8).indices, expected)
    print("ok")
"""


def test_a_forked_child_works():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120)
    assert done.stdout == "ok\n", done.stderr


def test_an_interrupt_after_work_arrives():
    """Ops do not look for signals: what is pending is raised as soon as the call returns."""
    code = """
import os, signal, threading, numpy as np
from stipple import ops
points = np.random.default_rng(0).random((3000, 3), dtype=np.float32)
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(200):
        ops.emd_exact(points, points + np.float32(0.01))
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\n", done.stderr
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
