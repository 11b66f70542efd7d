"""The networks of the papers by name: build_model("pointnet-classifier", {"classes": 40}), and models in files."""
from . import _stipple

__all__ = [_name for _name in dir(_stipple.models) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.models, _name) for _name in __all__})
