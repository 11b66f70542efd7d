"""Weights in .safetensors as state dicts of torch, and back."""
import os

import torch

from .. import io


def load_state_dict(path, *, device="cpu", return_metadata=False):
    """Tensors by name, in the order of the file, for Module.load_state_dict: io.load_safetensors. Nothing is unpickled.

    path              a .safetensors file, of stipple or of others; the name of shipped weights is found as well
    return_metadata   (tensors, metadata) instead: stipple.model, a JSON text, tells the network
    """
    file = os.fspath(path)
    if not os.path.exists(file) and os.path.dirname(file) == "":
        from .. import tasks

        file = tasks.find_weights(file)
    found = io.load_safetensors(file)
    tensors = {}
    for name, array in found.tensors.items():  # bfloat16, which numpy has none of, comes as a stipple.Array
        tensor = torch.from_dlpack(array) if hasattr(array, "data_ptr") else torch.from_numpy(array)
        tensors[name] = tensor.to(device)
    return (tensors, dict(found.metadata)) if return_metadata else tensors


def save_state_dict(path, state, *, metadata=None, overwrite=False):
    """Writes a module's state_dict(), or a dict of tensors by name, as .safetensors: io.save_safetensors.

    With the names of a network of stipple, and the metadata of a file of it, the program and stipple.network read it.
    Tensors on a GPU, strided and shared ones are written as the numbers that they hold.
    """
    state = state.state_dict() if isinstance(state, torch.nn.Module) else state
    arrays = {}
    for name, tensor in state.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: a {type(tensor).__name__}; wanted are tensors")
        tensor = tensor.detach().cpu().contiguous()
        arrays[name] = tensor if tensor.dtype is torch.bfloat16 else tensor.numpy()
    io.save_safetensors(path, arrays, metadata, overwrite=overwrite)
