"""stipple.metrics, network, models, engine, radiance and tasks as wholes: every call runs, nothing is copied on the way
in, kinds of arrays agree."""
import engine_calls
import metrics_calls
import network_calls
import numpy as np
import pytest
import radiance_calls
import stipple
import tasks_calls
from conftest import address, addresses_seen, as_numpy

CALLS = {
    "engine": engine_calls.CALLS,
    "metrics": metrics_calls.CALLS,
    "models": network_calls.MODEL_CALLS,
    "network": network_calls.CALLS,
    "radiance": radiance_calls.CALLS,
    "tasks": tasks_calls.CALLS,
}
ALL = [(folder, name) for folder, calls in CALLS.items() for name in calls]
READ_TWICE = {"psnr", "ssim"}  # the type decides which function it is


@pytest.mark.parametrize("folder, name", ALL)
def test_calls_run_and_take_arrays_as_they_are(folder, name):
    given, kept = set(), []

    def give(array):
        kept.append(array)
        given.add(address(array))
        return array

    with addresses_seen() as seen:
        expected = CALLS[folder][name](give)
    if kept:
        assert {a for argument, a in seen if argument and a in given} == given
    if kept and name not in READ_TWICE:  # the same of another kind
        for part, other in zip(as_numpy(expected), as_numpy(CALLS[folder][name](stipple.from_dlpack)), strict=True):
            np.testing.assert_array_equal(part, other)


def test_every_function_has_a_call():
    for folder, calls in CALLS.items():
        module = getattr(stipple, folder)
        functions = {n for n in module.__all__ if not isinstance(getattr(module, n), type)}
        assert functions - set(calls) == set(), folder
