#!/usr/bin/env python3
"""PointNet inference in PyTorch on a GPU, from the published form to the strongest one: the engine's peers.

    python3 bench/engine/pytorch_pointnet.py [--weights FILE] [--batch 32,1024] [--points 1024] [--variants NAME,...]

Models: pointnet (3 x 3 and 64 x 64 transforms), pointnet-t3 (the small one alone); 40 classes. Variants:
    eager-fp32        as published: Conv1d, BatchNorm1d, torch.max, batched products with the transforms; tf32 off
    eager-tf32        the same with tf32 in convolutions and products
    eager-half        the same in float16
    graph-half        the same, replayed as a CUDA graph
    folded-half       batch norm folded, transforms folded into the next layer, [B * N, C] products in float16, bias and
                      activation after the maximum
    graph-folded-half the same, replayed as a CUDA graph: the one to beat
FILE: stipple weights (.safetensors), default weights/pointnet-cls.safetensors of this repository; random weights where there
is none, and for a transform that it has not. Every variant is compared with float32 (largest difference of logits, share of equal
winners) before it is timed. Prints one JSON object a line. The engine's own times: stipple engine bench.
"""
import argparse
import copy
import json
import os
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Point(nn.Module):
    """A layer of every point: Conv1d, batch norm, ReLU where asked for."""

    def __init__(self, inputs, outputs, relu=True):
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), relu

    def forward(self, x):
        y = self.norm(self.conv(x))
        return F.relu(y) if self.relu else y


class Full(nn.Module):
    """A layer of every cloud."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear, self.norm = nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs)

    def forward(self, x):
        return F.relu(self.norm(self.linear(x)))


class TransformNet(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.conv1, self.conv2, self.conv3 = Point(k, 64), Point(64, 128), Point(128, 1024)
        self.fc1, self.fc2, self.fc3 = Full(1024, 512), Full(512, 256), nn.Linear(256, k * k)
        self.register_buffer("identity", torch.eye(k).reshape(1, -1), persistent=False)

    def forward(self, x):
        x = torch.max(self.conv3(self.conv2(self.conv1(x))), 2)[0]
        return (self.fc3(self.fc2(self.fc1(x))) + self.identity).view(-1, self.k, self.k)


class Head(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = Full(1024, 512), Full(512, 256), nn.Linear(256, classes)

    def forward(self, x):
        return self.fc3(self.fc2(self.fc1(x)))


class PointNet(nn.Module):
    """Points [B, 3, N] -> logits [B, classes], as published."""

    def __init__(self, classes, feature_transform):
        super().__init__()
        self.input_transform = TransformNet(3)
        self.feature_transform = TransformNet(64) if feature_transform else None
        self.conv1, self.conv2, self.conv3 = Point(3, 64), Point(64, 128), Point(128, 1024, relu=False)
        self.head = Head(classes)

    def forward(self, x):
        x = torch.bmm(x.transpose(2, 1), self.input_transform(x)).transpose(2, 1)
        x = self.conv1(x)
        if self.feature_transform is not None:
            x = torch.bmm(x.transpose(2, 1), self.feature_transform(x)).transpose(2, 1)
        x = torch.max(self.conv3(self.conv2(x)), 2)[0]
        return self.head(x)


def load(model, path):
    """Fills a model from stipple weights; tensors that either does not have are passed over."""
    from safetensors.torch import load_file
    tensors = load_file(path)
    state = {}
    for name, target in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        stored = tensors.get(name.replace(".conv.", ".").replace(".linear.", "."))
        if stored is not None:
            state[name] = stored.float().reshape(target.shape)
    model.load_state_dict(state, strict=False)


def fold(product, norm):
    """Weight [out, in] and bias of a product with the batch norm behind it, in float64."""
    weight = product.weight.detach().double().reshape(product.weight.shape[0], -1)
    bias = product.bias.detach().double()
    if norm is not None:
        scale = norm.weight.detach().double() / torch.sqrt(norm.running_var.double() + norm.eps)
        weight, bias = weight * scale[:, None], (bias - norm.running_mean.double()) * scale + norm.bias.detach().double()
    return weight, bias


class Folded:
    """Points [B, N, 3] -> logits. Products of [B * N, C] rows; nothing that can be folded is left."""

    def __init__(self, model, dtype):
        self.dtype = dtype
        self.trunk = [self.pair(layer) for layer in (model.conv1, model.conv2, model.conv3)]
        self.nets = [self.net(model.input_transform)]
        if model.feature_transform is not None:
            self.nets.append(self.net(model.feature_transform))
        self.head = self.full(model.head, None)

    def pair(self, layer):
        weight, bias = fold(layer.conv, layer.norm)
        return weight.to(self.dtype).contiguous(), bias.to(self.dtype)

    def full(self, net, identity):
        pairs = [fold(net.fc1.linear, net.fc1.norm), fold(net.fc2.linear, net.fc2.norm), fold(net.fc3, None)]
        if identity is not None:
            pairs[2] = (pairs[2][0], pairs[2][1] + identity.double().flatten())
        return [(weight.to(self.dtype).contiguous(), bias.to(self.dtype)) for weight, bias in pairs]

    def net(self, net):
        return [self.pair(layer) for layer in (net.conv1, net.conv2, net.conv3)], self.full(net, net.identity)

    @staticmethod
    def fully(x, layers):
        for weight, bias in layers[:-1]:
            x = F.relu(F.linear(x, weight, bias), inplace=True)
        return F.linear(x, *layers[-1])

    @staticmethod
    def pooled(x, clouds, last, relu):
        y = F.linear(x, last[0]).view(clouds, -1, last[0].shape[0]).amax(1) + last[1]
        return F.relu(y) if relu else y

    def transform(self, x, clouds, net):
        layers, full = net
        for weight, bias in layers[:-1]:
            x = F.relu(F.linear(x, weight, bias), inplace=True)
        return self.fully(self.pooled(x, clouds, layers[-1], True), full)

    @staticmethod
    def own(x, matrix, weight, bias):
        """Rows of each cloud times its own transform and a layer's weights: x (T W^T)."""
        clouds, k = matrix.shape[0], weight.shape[1]
        folded = torch.matmul(matrix.view(clouds, k, k), weight.t())
        return F.relu(torch.baddbmm(bias, x.view(clouds, -1, k), folded), inplace=True).view(-1, weight.shape[0])

    def __call__(self, points):
        clouds = points.shape[0]
        x = points.to(self.dtype).reshape(-1, 3)
        x = self.own(x, self.transform(x, clouds, self.nets[0]), *self.trunk[0])
        if len(self.nets) > 1:
            x = self.own(x, self.transform(x, clouds, self.nets[1]), *self.trunk[1])
        else:
            x = F.relu(F.linear(x, *self.trunk[1]), inplace=True)
        return self.fully(self.pooled(x, clouds, self.trunk[2], False), self.head)


def graph_of(function, x):
    """The function on x as one CUDA graph: a call that replays it and its result."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x)
    return graph.replay, result


def time_of(call, seconds=0.5):
    """Best and median milliseconds of a call, by events around as many calls as take 5 ms."""
    def timed(calls):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / calls

    for _ in range(3):
        call()
    calls = max(1, min(500, int(5 / max(timed(1), 1e-3))))
    times = []
    while len(times) < 10 or sum(times) * calls < 1e3 * seconds:
        times.append(timed(calls))
    return min(times), statistics.median(times)


def flops_of(points, classes, feature_transform):
    """Of the network as published, products alone."""
    def net(k):
        return points * (k * 64 + 64 * 128 + 128 * 1024) + 1024 * 512 + 512 * 256 + 256 * k * k + points * k * k
    trunk = points * (3 * 64 + 64 * 128 + 128 * 1024) + 1024 * 512 + 512 * 256 + 256 * classes
    return 2 * (trunk + net(3) + (net(64) if feature_transform else 0))


VARIANTS = ["eager-fp32", "eager-tf32", "eager-half", "graph-half", "folded-half", "graph-folded-half"]


def build(variant, model, points):
    """A call that makes logits of the points [B, N, 3], and a call that gives them."""
    tf32 = variant == "eager-tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    if "folded" in variant:
        function, x = Folded(model, torch.float16), points
    else:
        function = copy.deepcopy(model)
        x = points.transpose(1, 2).contiguous()
        if "half" in variant:
            function, x = function.half(), x.half()
    if variant.startswith("graph-"):
        replay, result = graph_of(function, x)
        return replay, lambda: (replay(), result.float())[1]
    return lambda: function(x), lambda: function(x).float()


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default=os.path.join(folder, "../../weights/pointnet-cls.safetensors"))
    parser.add_argument("--batch", default="32,1024")
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--models", default="pointnet,pointnet-t3")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU that PyTorch can use")
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    torch.backends.cudnn.benchmark = True
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}", file=sys.stderr)
    for name in arguments.models.split(","):
        has_feature_transform = name == "pointnet"
        model = PointNet(40, has_feature_transform)
        if os.path.exists(arguments.weights):
            load(model, arguments.weights)
        model = model.cuda().eval()
        for batch in map(int, arguments.batch.split(",")):
            points = torch.rand(batch, arguments.points, 3, device="cuda") * 2 - 1
            points *= 0.2 + 0.8 * torch.rand(batch, 1, 3, device="cuda")  # boxes of all shapes
            expected = torch.cat([build("eager-fp32", model, part)[1]() for part in points.split(128)])
            for variant in arguments.variants.split(","):
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                call, logits_of = build(variant, model, points)
                logits = logits_of()
                difference = (logits - expected).abs().max().item()
                agreement = (logits.argmax(1) == expected.argmax(1)).float().mean().item()
                best, median = time_of(call)
                rate = batch / (1e-3 * best)
                print(json.dumps({
                    "who": "pytorch", "variant": variant, "model": name, "batch": batch, "points": arguments.points,
                    "ms": best, "ms_median": median, "clouds_per_s": rate,
                    "tflops": 1e-12 * rate * flops_of(arguments.points, 40, has_feature_transform),
                    "logit_difference": difference, "logit_spread": expected.abs().max().item(),
                    "winner_agreement": agreement,
                    "device_bytes": torch.cuda.max_memory_allocated() - before}), flush=True)
                del call, logits_of


if __name__ == "__main__":
    main()
