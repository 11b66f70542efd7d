"""Points, meshes and scans. Every function is the C++ function of its name, and its docstring that contract.

Points are arrays [n, 3] of float32, or an io.PointCloud, whose positions they are; a mesh is an io.Mesh, or a tuple
(vertices, triangles) of arrays. Transforms are 4 x 4 matrices of float64. Masks are arrays of bool.
"""
from . import _stipple

_public = [_name for _name in dir(_stipple.geometry) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.geometry, _name) for _name in _public})
__all__ = _public
