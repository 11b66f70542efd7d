#!/usr/bin/env python3
"""Converts a PyTorch checkpoint (.pt, .pth, .ckpt: a pickle) into .safetensors, which stipple reads.

    python3 scripts/pth_to_safetensors.py model.pth model.safetensors
    python3 scripts/pth_to_safetensors.py --model pointnet-classifier best_model.pth pointnet.safetensors

Without --model all tensors keep their names. With it, those of a published checkpoint get stipple's names and shapes,
and the file says which network it is of, so that stipple runs it:

    pointnet-classifier       fxia22/pointnet.pytorch, yanx27/Pointnet_Pointnet2_pytorch
    pointnet-segmenter        fxia22/pointnet.pytorch
    pointnet-part-segmenter   yanx27/Pointnet_Pointnet2_pytorch
    puflow                    unknownue/puflow, the discrete model

Runs in your own Python with numpy and torch (2.10 or newer). stipple itself never opens pickles: they can run code. This
script asks PyTorch to load tensors only, and refuses versions of it in which that could be circumvented. An input that
is .safetensors already needs no torch.
"""
import argparse
import json
import os
import struct
import sys

import numpy

STATE_LEVELS = ("model_state_dict", "state_dict", "model")
NORM_PARTS = ("weight", "bias", "running_mean", "running_var")
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
          "BOOL": "?"}


class MappingError(ValueError):
    """A checkpoint that is not what --model says."""


# === Names: pure functions on dictionaries of arrays

class Mapping:
    """Tensors of a checkpoint, taken one by one under new names; in the end nothing may be left."""

    def __init__(self, tensors, anchor):
        ends = [name for name in tensors if name == anchor or name.endswith("." + anchor)]
        if len(ends) != 1:
            raise MappingError(f"no tensor is named {anchor}" if not ends else f"{len(ends)} tensors end in {anchor}")
        prefix = ends[0][:-len(anchor)]  # "module." of DataParallel, "network." of others
        self.left = {name[len(prefix):]: value for name, value in tensors.items() if name.startswith(prefix)}
        self.mapped = {}

    def has(self, name):
        return name in self.left

    def shape(self, name):
        if name not in self.left:
            raise MappingError(f"tensor {name} is missing")
        return tuple(self.left[name].shape)

    def take(self, source, target, shape):
        """shape: of the target, from the one of the source, whose further dimensions must be 1."""
        found = self.shape(source)
        if int(numpy.prod(found)) != int(numpy.prod(shape)):
            raise MappingError(f"tensor {source} has the shape {list(found)}, {target} needs {list(shape)}")
        self.mapped[target] = self.left.pop(source).reshape(shape)

    def linear(self, source, target, norm=None):
        """A Linear or 1 x 1 convolution, and the batch norm after it."""
        channels = self.shape(f"{source}.weight")[:2]
        if len(channels) != 2:
            raise MappingError(f"tensor {source}.weight has the shape {list(channels)}, a matrix is needed")
        self.take(f"{source}.weight", f"{target}.weight", channels)
        if self.has(f"{source}.bias"):
            self.take(f"{source}.bias", f"{target}.bias", channels[:1])
        for part in NORM_PARTS if norm else ():
            self.take(f"{norm}.{part}", f"{target}.norm.{part}", channels[:1])
        return channels

    def transform_net(self, source, target):
        for i in (1, 2, 3):
            self.linear(f"{source}.conv{i}", f"{target}.conv{i}", f"{source}.bn{i}")
        for i in (1, 2):
            self.linear(f"{source}.fc{i}", f"{target}.fc{i}", f"{source}.bn{i + 3}")
        self.linear(f"{source}.fc3", f"{target}.fc3")

    def finish(self):
        # Counters of batches and stored permutations say nothing that the network does not.
        left = [name for name, value in self.left.items() if numpy.dtype(value.dtype).kind == "f"]
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise MappingError(f"the model has no place for {', '.join(sorted(left)[:3])}{more}")
        return self.mapped


def text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def pointnet_config(classes, has_input_transform, has_feature_transform, **more):
    config = {"variant": "torch", "classes": classes, "input_transform": has_input_transform,
              "feature_transform": has_feature_transform, "dropout": 0.3, **more}
    return {key: text(value) for key, value in config.items()}


def require_coordinates(mapping, name):
    channels = mapping.shape(name)[1]
    if channels != 3:
        raise MappingError(f"{name} takes {channels} channels a point; networks on coordinates alone (3) are supported")


def map_trunk(mapping):
    """Both transforms, where they are, and the layers up to the max. Returns which transforms are there."""
    require_coordinates(mapping, "feat.conv1.weight")
    has = [mapping.has(f"feat.{net}.conv1.weight") for net in ("stn", "fstn")]
    if has[0]:
        mapping.transform_net("feat.stn", "input_transform")
    if has[1]:
        mapping.transform_net("feat.fstn", "feature_transform")
    for i in (1, 2, 3):
        mapping.linear(f"feat.conv{i}", f"conv{i}", f"feat.bn{i}")
    return has


def map_pointnet_classifier(tensors):
    mapping = Mapping(tensors, "feat.conv1.weight")
    has = map_trunk(mapping)
    for i in (1, 2):
        mapping.linear(f"fc{i}", f"head.fc{i}", f"bn{i}")
    classes = mapping.linear("fc3", "head.fc3")[0]
    return mapping.finish(), pointnet_config(classes, *has)


def map_pointnet_segmenter(tensors):
    mapping = Mapping(tensors, "feat.conv1.weight")
    has = map_trunk(mapping)
    for i in (1, 2, 3):
        mapping.linear(f"conv{i}", f"head.conv{i}", f"bn{i}")
    classes = mapping.linear("conv4", "head.conv4")[0]
    return mapping.finish(), pointnet_config(classes, *has)


def map_pointnet_part_segmenter(tensors):
    mapping = Mapping(tensors, "convs1.weight")
    require_coordinates(mapping, "conv1.weight")
    has = [mapping.has(f"{net}.conv1.weight") for net in ("stn", "fstn")]
    if has[0]:
        mapping.transform_net("stn", "input_transform")
    if has[1]:
        mapping.transform_net("fstn", "feature_transform")
    point_channels = 0
    for i in range(1, 6):
        channels = mapping.linear(f"conv{i}", f"conv{i}", f"bn{i}")[0]
        point_channels += channels
    for i in (1, 2, 3):
        inputs = mapping.linear(f"convs{i}", f"head.conv{i}", f"bns{i}")[1]
        if i == 1:
            categories = inputs - point_channels - channels  # beside all layers and the max of the last
    if categories < 1:
        raise MappingError("convs1.weight has no channels for the category")
    classes = mapping.linear("convs4", "head.conv4")[0]
    return mapping.finish(), pointnet_config(classes, *has, categories=categories)


def map_puflow(tensors):
    mapping = Mapping(tensors, "flow_blocks.0.actnorm.logs")
    norms = {name[:-len(".running_mean")] for name in mapping.left if name.endswith(".running_mean")}
    for name in sorted(mapping.left):
        if numpy.dtype(mapping.left[name].dtype).kind != "f":
            continue
        layer, _, part = name.rpartition(".")
        shape = mapping.shape(name)
        if layer in norms:
            # A sequence "convs.0": the norm, number 1 of it, belongs to the convolution, number 0.
            sequence, _, number = layer.rpartition(".")
            mapping.take(name, f"{sequence}.{int(number) - 1}.norm.{part}", shape)
        elif name.endswith(".permutater.W"):
            mapping.take(name, f"{layer}.weight", shape)
        elif layer.endswith(".actnorm"):
            mapping.take(name, name, shape[-1:])
        else:
            mapping.take(name, name, shape[:2])
    return mapping.finish(), {"ratio": "4", "neighbours": "16", "interpolation_neighbours": "8", "stages": "false"}


MODELS = {"pointnet-classifier": map_pointnet_classifier, "pointnet-segmenter": map_pointnet_segmenter,
          "pointnet-part-segmenter": map_pointnet_part_segmenter, "puflow": map_puflow}


def map_checkpoint(model, tensors, settings=None):
    """Arrays by their published names -> arrays by stipple's names, and the metadata. settings: configuration that a
    checkpoint does not tell ({"ratio": "8"})."""
    mapped, config = MODELS[model](tensors)
    for key, value in (settings or {}).items():
        if key not in config:
            raise MappingError(f"{model} has no option {key}; it has {', '.join(config)}")
        config[key] = value
    return mapped, {"format": "pt", "stipple.model": model, "stipple.config": json.dumps(config)}


# === Files

def tensors_of(value, prefix=""):
    """Tensors of nested dictionaries, named by their path; a level that holds the model is left out of the names."""
    found = {}
    for key, item in value.items():
        if hasattr(item, "items"):
            found.update(tensors_of(item, prefix if key in STATE_LEVELS else f"{prefix}{key}."))
        elif hasattr(item, "detach"):
            item = item.detach().cpu().contiguous()
            found[f"{prefix}{key}"] = (item.float() if str(item.dtype) == "torch.bfloat16" else item).numpy()
    return found


def state_of(checkpoint):
    """The model of a checkpoint, without the optimiser and the rest."""
    for level in STATE_LEVELS:
        if hasattr(checkpoint.get(level), "items"):
            return state_of(checkpoint[level])
    return checkpoint


def load_pickle(path, state_only):
    try:
        import torch
    except ImportError as error:
        sys.exit(f"pth_to_safetensors: {error}; install torch in this Python")
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < (2, 10):
        sys.exit(f"pth_to_safetensors: torch {torch.__version__} can be made to run code by a checkpoint; 2.10 or newer is needed")
    print("pth_to_safetensors: a pickle is read with weights_only=True; convert only files whose origin you trust", file=sys.stderr)
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    return tensors_of(state_of(checkpoint) if state_only else checkpoint)


def load_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            bits = numpy.frombuffer(data[begin:end], "<u2").astype("<u4") << 16
            arrays[name] = bits.view("<f4").reshape(entry["shape"])
        elif entry["dtype"] in DTYPES:
            arrays[name] = numpy.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        else:
            raise MappingError(f"tensor {name} is of type {entry['dtype']}")
    return arrays


def save_safetensors(path, arrays, metadata):
    names = {numpy.dtype(dtype): name for name, dtype in DTYPES.items()}
    header, blocks, end = {"__metadata__": metadata}, [], 0
    # The largest elements first, so that every tensor is aligned.
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
        array = numpy.asarray(arrays[name], order="C")
        array = array.astype(array.dtype.newbyteorder("<"))
        if array.dtype not in names:
            raise MappingError(f"tensor {name}: {array.dtype} has no place in a .safetensors file")
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        blocks.append(array.tobytes())
        end += array.nbytes
    text_of_header = json.dumps(header).encode()
    text_of_header += b" " * (-(8 + len(text_of_header)) % 64)
    temporary = f"{path}.{os.getpid()}.part"
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text_of_header)) + text_of_header + b"".join(blocks))
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--model", choices=sorted(MODELS), help="the published network that the checkpoint is of")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="configuration that the checkpoint does not tell: ratio=8, dropout=0.4")
    arguments = parser.parse_args()
    is_safetensors = arguments.input.endswith(".safetensors")
    try:
        found = load_safetensors(arguments.input) if is_safetensors else load_pickle(arguments.input, bool(arguments.model))
        if not found:
            raise MappingError("it holds no tensors")
        metadata = {"format": "pt"}
        if arguments.model:
            found, metadata = map_checkpoint(arguments.model, found, dict(pair.partition("=")[::2] for pair in arguments.set))
        elif arguments.set:
            raise MappingError("--set needs --model")
        save_safetensors(arguments.output, found, metadata)
    except (ValueError, OSError, struct.error) as error:
        sys.exit(f"pth_to_safetensors: {arguments.input}: {error}")
    print(f"{arguments.output}: {len(found)} tensors" + (f" of {arguments.model}" if arguments.model else ""))


if __name__ == "__main__":
    main()
