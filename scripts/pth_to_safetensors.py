#!/usr/bin/env python3
"""Converts a PyTorch checkpoint (.pt, .pth, .ckpt: a pickle) into .safetensors, which stipple reads.

    python3 scripts/pth_to_safetensors.py model.pth model.safetensors

Runs in your own Python with torch (2.10 or newer) and safetensors. stipple itself never opens pickles: they can run
code. This script asks PyTorch to load tensors only, and refuses versions of it in which that could be circumvented.
"""
import argparse
import sys


def tensors_of(value, prefix=""):
    """Tensors of nested dictionaries, named by their path; a "state_dict" or "model" level is left out of the names."""
    found = {}
    for key, item in value.items():
        if hasattr(item, "items"):
            found.update(tensors_of(item, prefix if key in ("state_dict", "model") else f"{prefix}{key}."))
        elif hasattr(item, "detach"):
            found[f"{prefix}{key}"] = item.detach().cpu().contiguous().clone()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input")
    parser.add_argument("output")
    arguments = parser.parse_args()
    try:
        import torch
        from safetensors.torch import save_file
    except ImportError as error:
        sys.exit(f"pth_to_safetensors: {error}; install torch and safetensors in this Python")
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < (2, 10):
        sys.exit(f"pth_to_safetensors: torch {torch.__version__} can be made to run code by a checkpoint; 2.10 or newer is needed")
    print("pth_to_safetensors: a pickle is read with weights_only=True; convert only files whose origin you trust", file=sys.stderr)
    found = tensors_of(torch.load(arguments.input, map_location="cpu", weights_only=True))
    if not found:
        sys.exit(f"pth_to_safetensors: {arguments.input} holds no tensors")
    save_file(found, arguments.output, metadata={"format": "pt"})
    print(f"{arguments.output}: {len(found)} tensors")


if __name__ == "__main__":
    main()
