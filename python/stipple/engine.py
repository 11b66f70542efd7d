"""Networks compiled for one device and precision, and run on arrays without a copy: docs/engine.md.

    compiled = engine.compile(model.network, model.weights, precision="fp32", max_batch=8)
    context = engine.Context(compiled)
    logits = context.run({"points": points})["logits"]
"""
from . import _stipple

__all__ = [_name for _name in dir(_stipple.engine) if not _name.startswith("_")]
globals().update({_name: getattr(_stipple.engine, _name) for _name in __all__})
