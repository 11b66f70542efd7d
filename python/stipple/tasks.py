"""What the program's commands do: classify, segment, sample, upsample, register, reconstruct, evaluate.

Clouds are stipple.io.PointCloud objects, whose attributes are carried along, or float32 arrays [n, 3]. Networks are
named by a file or by the name of shipped weights (list_weights()).
"""
from . import _stipple

__all__ = [_name for _name in dir(_stipple.tasks) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.tasks, _name) for _name in __all__})
