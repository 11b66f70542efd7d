"""What the functions of stipple.torch share: tensors on their way to the ops and back."""
import functools

import torch

#: 16-bit numbers, which autocast makes of others.
_SHORT = (torch.float16, torch.bfloat16)


def is_autocast(device_type):
    """Whether torch.autocast is on for tensors of that device, "cpu" or "cuda", in any version of torch."""
    try:
        return torch.is_autocast_enabled(device_type)  # since 2.4
    except TypeError:
        return torch.is_autocast_cpu_enabled() if device_type == "cpu" else torch.is_autocast_enabled()


def float_inputs(*tensors):
    """The tensors; under autocast 16-bit ones as float32, which their gradients do not see.

    torch.cuda.amp.custom_fwd does the same for CUDA tensors alone, and moved to torch.amp in 2.4.
    """
    made = tuple(t.float() if isinstance(t, torch.Tensor) and t.dtype in _SHORT and is_autocast(t.device.type) else t
                 for t in tensors)
    return made if len(made) > 1 else made[0]


def plain(tensor):
    """Its numbers for an op: the same memory, without what autograd knows of it."""
    return tensor.detach() if isinstance(tensor, torch.Tensor) else tensor


def dense(gradient):
    """A gradient for an op: autograd hands out expanded ones, whose rows are one row."""
    return gradient.detach().contiguous()


class _Refused(torch.autograd.Function):
    """Passes gradients on; has none itself, by name."""

    @staticmethod
    def forward(ctx, name, count, *tensors):
        ctx.name = name
        return tuple(t.clone() if t is not None else None for t in tensors[:count])

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(f"stipple.torch.{ctx.name} has no second derivative: its gradient cannot be differentiated "
                           "(create_graph=True)")


def first_derivative(name):
    """Decorates a backward pass: it runs without autograd, and what would differentiate it is refused by name."""
    def decorate(backward):
        @functools.wraps(backward)
        def run(ctx, *gradients):
            with torch.no_grad():
                found = backward(ctx, *gradients)
            if not torch.is_grad_enabled():
                return found
            found = found if isinstance(found, tuple) else (found,)
            sources = [t for t in (*ctx.saved_tensors, *gradients) if isinstance(t, torch.Tensor) and t.requires_grad]
            made = [t for t in found if t is not None]
            if sources and made:
                refused = iter(_Refused.apply(name, len(made), *made, *sources))
                found = tuple(None if t is None else next(refused) for t in found)
            return found
        return staticmethod(run)
    return decorate
