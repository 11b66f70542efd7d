#!/usr/bin/env python3
"""Times a training step of PyTorch on the CPU: the peer of learn_step_bench, on the same network and batch.

    command -p python3 bench/learn/pytorch_step.py [--batch 16] [--points 1024] [--steps 6] [--layers linear|conv]

PointNet classifier with the 3 x 3 transform, 40 classes, cross entropy with label smoothing, AdamW, clipped gradients.
`conv` is the network as published (Conv1d on [batch, channels, points]), `linear` the same numbers by Linear on rows.
Prints the fastest step in milliseconds.
"""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


class Rows(nn.Module):
    def __init__(self, inputs, outputs, relu=True):
        super().__init__()
        self.linear, self.norm, self.relu = nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), relu

    def forward(self, x):
        y = self.norm(self.linear(x))
        return F.relu(y) if self.relu else y


class Conv(nn.Module):
    def __init__(self, inputs, outputs, relu=True):
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), relu

    def forward(self, x):
        y = self.norm(self.conv(x))
        return F.relu(y) if self.relu else y


class PointNet(nn.Module):
    def __init__(self, batch, points, conv):
        super().__init__()
        layer = Conv if conv else Rows
        self.shape, self.conv = (batch, points), conv
        self.t_points = nn.Sequential(layer(3, 64), layer(64, 128), layer(128, 1024))
        self.t_cloud = nn.Sequential(Rows(1024, 512), Rows(512, 256), nn.Linear(256, 9))
        self.points = nn.Sequential(layer(3, 64), layer(64, 128), layer(128, 1024, relu=False))
        self.head = nn.Sequential(Rows(1024, 512), Rows(512, 256), nn.Dropout(0.4), nn.Linear(256, 40))

    def over_points(self, layers, x):  # x: [batch, points, 3]
        if self.conv:
            return layers(x.transpose(1, 2)).max(2)[0]
        return layers(x.reshape(-1, 3)).view(*self.shape, -1).max(1)[0]

    def forward(self, x):
        matrix = self.t_cloud(self.over_points(self.t_points, x)).view(-1, 3, 3) + torch.eye(3)
        return self.head(self.over_points(self.points, torch.bmm(x, matrix)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--layers", choices=["linear", "conv"], default="linear")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = PointNet(options.batch, options.points, options.layers == "conv")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    points, labels = torch.randn(options.batch, options.points, 3), torch.randint(40, (options.batch,))
    times = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(points), labels, label_smoothing=0.2).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        times.append(time.perf_counter() - begin)
    print(f"pytorch {torch.__version__} {options.layers}: {1e3 * min(times):.1f} ms a step of {options.batch} clouds of "
          f"{options.points} points, {options.batch / min(times):.1f} clouds/s, {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
