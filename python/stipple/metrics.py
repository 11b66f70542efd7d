"""Measures of clouds, meshes, labels, motions and images: docs/metrics.md, in each published convention by its name.

Clouds are float32 arrays [n, 3] of any kind, stipple.io.PointCloud objects, which are compared in world coordinates, or
Points that were brought into a frame before. What is searched once (nearest_between) may be asked often. Results are
plain numbers, tuples whose parts have names, and numpy arrays.
"""
from . import _stipple

__all__ = [_name for _name in dir(_stipple.metrics) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.metrics, _name) for _name in __all__})
