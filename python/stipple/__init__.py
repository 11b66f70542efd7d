"""Learns on 3D points: samples, upsamples, classifies, registers and reconstructs point clouds.

Arrays of numpy, torch, cupy and jax go in without a copy, and results come out as the same kind.
docs/python.md tells more; the docstring of a function is the contract of the C++ function of the same name.
"""
import importlib as _importlib

from ._stipple import (
    ArgumentError, Array, CheckFailed, ConfigError, CudaError, DeviceError, Error, FileFormatError, InternalError,
    LostRankError, NumericError, OutOfMemoryError, OutputError, __version__, asarray, from_dlpack, has_cuda,
    list_devices, set_threads, threads,
)

#: Modules of the package, imported when they are first used.
_FOLDERS = ("engine", "geometry", "io", "metrics", "models", "network", "ops", "picture", "radiance", "tasks")

__all__ = [
    "ArgumentError", "Array", "CheckFailed", "ConfigError", "CudaError", "DeviceError", "Error", "FileFormatError",
    "InternalError", "LostRankError", "NumericError", "OutOfMemoryError", "OutputError", "__version__", "asarray",
    "from_dlpack", "has_cuda", "list_devices", "set_threads", "threads", *_FOLDERS,
]


def __getattr__(name):
    if name in _FOLDERS:
        return _importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
