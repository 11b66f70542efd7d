"""Voxel radiance fields from photographs: train, render to arrays, export points and meshes: docs/radiance.md."""
from . import _stipple

__all__ = [_name for _name in dir(_stipple.radiance) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.radiance, _name) for _name in __all__})
