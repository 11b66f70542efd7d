"""Files of clouds, meshes and arrays: docs/formats.md. Every function is the C++ function of its name.

PointCloud and Mesh own their memory; their arrays (positions, attributes, triangles) are views of it, without a copy.
What reading or writing drops, rounds or guesses is a warning of Python, FileWarning.
"""
from collections.abc import MutableMapping as _MutableMapping

from . import _stipple

_public = [_name for _name in dir(_stipple.io) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.io, _name) for _name in _public})
__all__ = _public

_MutableMapping.register(_stipple.io.Attributes)
