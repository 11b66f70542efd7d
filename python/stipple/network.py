"""Networks as data: a Builder writes them layer by layer, weights belong to them by name, ONNX takes them elsewhere.

    build = network.Builder("my-classifier")
    x = build.input("points", network.points_of(3))
    x = build.linear("conv", x, 64, norm=True, activation="relu")
    build.output("logits", build.linear("fc", build.max_points("pool", x), 40))
    net = build.finish()
    weights = network.initial_weights(net, seed=1)        # weights["conv.weight"] is a view, [64, 3]

A notebook shows a Network as its diagram.
"""
from . import _stipple

__all__ = [_name for _name in dir(_stipple.network) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.network, _name) for _name in __all__})
