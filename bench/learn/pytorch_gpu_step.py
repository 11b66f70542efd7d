#!/usr/bin/env python3
"""Times training steps of PyTorch on a GPU: the peer of learn_gpu_bench, on the same network and batch.

    python3 bench/learn/pytorch_gpu_step.py [--batch 1024,64] [--points 1024] [--steps 30] [--way eager,graph,compile]
        [--precision fp32,tf32,bf16,fp16] [--json]

PointNet classifier with both transforms as published (Conv1d, batch norm, 40 classes), cross entropy with label
smoothing and the regulariser of the transform, AdamW (fused), gradients clipped to 1; autocast for bf16 and fp16, with
a GradScaler for fp16. A way is eager, a CUDA graph of the whole step, or torch.compile of the network; one that fails
says why. The data are on the device. The best of three rounds of --steps steps.
"""
import argparse
import contextlib
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def layer(inputs, outputs, relu=True):
    parts = [nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs)] + ([nn.ReLU(True)] if relu else [])
    return nn.Sequential(*parts)


def dense(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(True))


class Transform(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.points = nn.Sequential(layer(k, 64), layer(64, 128), layer(128, 1024))
        self.cloud = nn.Sequential(dense(1024, 512), dense(512, 256), nn.Linear(256, k * k))
        nn.init.zeros_(self.cloud[-1].weight), nn.init.zeros_(self.cloud[-1].bias)
        self.register_buffer("identity", torch.eye(k))

    def forward(self, x):
        return self.cloud(self.points(x).max(2)[0]).view(-1, self.k, self.k) + self.identity


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform3, self.transform64 = Transform(3), Transform(64)
        self.first, self.second, self.third = layer(3, 64), layer(64, 128), layer(128, 1024, relu=False)
        self.head = nn.Sequential(dense(1024, 512), nn.Dropout(0.4), dense(512, 256), nn.Dropout(0.4), nn.Linear(256, 40))

    def forward(self, x):  # [batch, 3, points]
        x = torch.bmm(self.transform3(x).transpose(1, 2), x)
        x = self.first(x)
        matrix = self.transform64(x)
        x = torch.bmm(matrix.transpose(1, 2), x)
        return self.head(self.third(self.second(x)).max(2)[0]), matrix


class Step:
    def __init__(self, batch, points, precision, way):
        torch.manual_seed(0)
        self.model = PointNet().cuda().train()
        self.network = torch.compile(self.model) if way == "compile" else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.05, fused=True,
                                           capturable=way == "graph")
        self.type = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
        self.scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")
        self.points = torch.randn(batch, 3, points, device="cuda")
        self.labels = torch.randint(40, (batch,), device="cuda")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
        self.graph = None
        if way == "graph":
            self.capture()

    def run(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=self.type) if self.type else contextlib.nullcontext():
            logits, matrix = self.network(self.points)
            loss = F.cross_entropy(logits.float(), self.labels, label_smoothing=0.2)
            matrix = matrix.float()
            difference = torch.bmm(matrix, matrix.transpose(1, 2)) - self.model.transform64.identity
            loss = loss + 0.001 * difference.norm(dim=(1, 2)).mean()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1, foreach=True)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def capture(self):
        # The scaler reads back whether gradients are finite, which a graph cannot: there its scale is a constant.
        if self.scaler.is_enabled():
            self.scaler = torch.amp.GradScaler("cuda", enabled=False)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.run()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.run()

    def __call__(self):
        self.graph.replay() if self.graph else self.run()


def measure(batch, points, precision, way, steps):
    torch.cuda.empty_cache()
    step = Step(batch, points, precision, way)
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    best = 1e30
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - begin) / steps)
    # What a graph holds lives in a pool of its own that was taken before: then what is reserved counts.
    peak = torch.cuda.memory_reserved() if way == "graph" else torch.cuda.max_memory_allocated()
    return {"peer": f"PyTorch {torch.__version__}", "precision": precision, "way": way, "batch": batch, "points": points,
            "ms": 1e3 * best, "clouds_per_s": batch / best, "peak_gib": peak / 2**30}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", default="1024,64")
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--way", default="eager,graph,compile")
    parser.add_argument("--precision", default="fp32,tf32,bf16,fp16")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for batch in map(int, options.batch.split(",")):
        for way in options.way.split(","):
            for precision in options.precision.split(","):
                if way != "eager" and precision in ("fp32", "tf32"):
                    continue  # never the best
                try:
                    row = measure(batch, options.points, precision, way, options.steps)
                except Exception as error:  # noqa: BLE001: a way that does not work is part of the result
                    print(f"PyTorch {precision} {way} batch {batch}: {type(error).__name__}: {str(error).splitlines()[0][:150]}",
                          file=sys.stderr)
                    continue
                if options.json:
                    print(json.dumps(row), flush=True)
                else:
                    print(f"{row['peer']:18} {precision:5} {way:8} batch {batch:5}: {row['ms']:8.2f} ms, "
                          f"{row['clouds_per_s']:9.0f} clouds/s, {row['peak_gib']:6.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
