"""What tests of the Python module share."""
import contextlib
import os
import signal
import sys

import numpy as np
import pytest
from stipple import _stipple

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "examples"))
# A script that starts tests in the background makes them ignore Ctrl-C, and with them the processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def as_numpy(result):
    """Every array of a result, as numpy arrays in order."""
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in as_numpy(part)]
    if hasattr(result, "numpy"):
        return [result.detach().cpu().numpy() if hasattr(result, "detach") else result.numpy()]
    if hasattr(result, "toarray"):
        return [result.toarray()]
    if isinstance(result, (dict, str)):
        return []
    return [np.asarray(result)]


def address(array):
    """Of the first number, for any kind of array."""
    pointer = getattr(array, "data_ptr", None)
    if pointer is None:
        return array.__array_interface__["data"][0]
    return pointer() if callable(pointer) else pointer


def arrays_of(result):
    """The arrays of a result as they are."""
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in arrays_of(part)]
    return [result] if hasattr(result, "shape") and hasattr(result, "dtype") else []


@contextlib.contextmanager
def addresses_seen():
    """A list of (argument, address) of every array that C++ is given, and of (None, address) of those that it makes."""
    seen = []
    _stipple._trace_addresses(seen)
    try:
        yield seen
    finally:
        _stipple._trace_addresses(None)


def traced(call, convert):
    """What a call returns, the addresses of the arrays it was given, and those that C++ saw and made."""
    given, kept = set(), []

    def give(array):
        made = convert(array)
        kept.append(made)
        given.add(address(made))
        return made

    with addresses_seen() as seen:
        result = call(give)
    return result, given, kept, {a for name, a in seen if name}, {a for name, a in seen if not name}


@pytest.fixture
def cloud():
    return np.random.default_rng(1).random((100, 3), dtype=np.float32)
