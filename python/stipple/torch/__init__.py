"""stipple.ops as differentiable functions of torch, on CPU and CUDA tensors, without a copy.

A function has the arguments and results of the function of its name in stipple.ops, and its docstring says which results
have gradients, for which arguments. Indices are chosen by the forward pass and held fixed. What is not float32 is
refused, as everywhere, but under torch.autocast: there 16-bit tensors become float32. There are no second derivatives,
and asking for one says so.

Any torch from 1.13 on; nothing is linked to it. docs/python.md tells more.
"""
from . import chamfer3D
from .distances import chamfer, chamfer_3DDist, chamfer_loss, emd, fscore, hausdorff, nearest_pairs, sinkhorn
from .interpolation import interpolate, soft_project, three_interpolate, three_weights
from .neighbours import farthest_point_sample, gather, group, knn
from .pointnet import linear_max, linear_norm_max
from .weights import load_state_dict, save_state_dict

__all__ = [
    "chamfer", "chamfer3D", "chamfer_3DDist", "chamfer_loss", "emd", "farthest_point_sample", "fscore", "gather", "group",
    "hausdorff", "interpolate", "knn", "linear_max", "linear_norm_max", "load_state_dict", "nearest_pairs",
    "save_state_dict", "sinkhorn", "soft_project", "three_interpolate", "three_weights",
]
