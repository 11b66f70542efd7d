#!/usr/bin/env python3
"""Trains a PointNet classifier in PyTorch and writes it as stipple weights: what the engine's precisions are compared on.

    python3 bench/engine/train_pointnet.py modelnet40.npz names.txt pointnet.safetensors [--epochs 120]

The .npz holds train_points, train_labels, test_points, test_labels; points either float [clouds, n, 3] or uint32
[clouds, n] with 10 bits a coordinate over [-1, 1]. Scaled, shifted and thinned at random; no rotation. Prints the
accuracy on the test set after the last epoch, which is also the one written.
"""
import argparse
import json
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn


def unpack(points):
    if points.dtype != np.uint32:
        return torch.from_numpy(points.astype(np.float32))
    axes = [(points >> shift) & 1023 for shift in (0, 10, 20)]
    return torch.from_numpy(np.stack(axes, axis=-1).astype(np.float32) / 511.5 - 1)


class Layer(nn.Module):
    """Linear, batch norm over all rows, ReLU where asked for."""

    def __init__(self, inputs, outputs, relu=True):
        super().__init__()
        self.linear, self.norm, self.relu = nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), relu

    def forward(self, x):
        y = self.linear(x)
        y = self.norm(y.reshape(-1, y.shape[-1])).reshape(y.shape)
        return F.relu(y) if self.relu else y


class TransformNet(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.conv1, self.conv2, self.conv3 = Layer(k, 64), Layer(64, 128), Layer(128, 1024)
        self.fc1, self.fc2, self.fc3 = Layer(1024, 512), Layer(512, 256), nn.Linear(256, k * k)
        nn.init.zeros_(self.fc3.weight)
        nn.init.zeros_(self.fc3.bias)

    def forward(self, x):
        x = self.conv3(self.conv2(self.conv1(x))).amax(dim=1)
        matrix = self.fc3(self.fc2(self.fc1(x))).float()
        return matrix.view(-1, self.k, self.k) + torch.eye(self.k, device=x.device)


class Head(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = Layer(1024, 512), Layer(512, 256), nn.Linear(256, classes)

    def forward(self, x):
        return self.fc3(F.dropout(self.fc2(self.fc1(x)), 0.3, self.training))


class PointNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.input_transform, self.feature_transform = TransformNet(3), TransformNet(64)
        self.conv1, self.conv2, self.conv3 = Layer(3, 64), Layer(64, 128), Layer(128, 1024, relu=False)
        self.head = Head(classes)

    def forward(self, x):
        x = self.conv1(x @ self.input_transform(x))
        matrix = self.feature_transform(x)
        x = self.conv3(self.conv2(x @ matrix.to(x.dtype))).amax(dim=1)
        return self.head(x).float(), matrix


def stipple_name(name):
    return name.replace(".linear.", ".")


def augment(points):
    clouds, n = points.shape[:2]
    device = points.device
    scale = torch.empty(clouds, 1, 3, device=device).uniform_(0.8, 1.25)
    shift = torch.empty(clouds, 1, 3, device=device).uniform_(-0.1, 0.1)
    dropped = torch.rand(clouds, n, 1, device=device) < torch.rand(clouds, 1, 1, device=device) * 0.5
    points = torch.where(dropped, points[:, :1], points)
    return points * scale + shift


def accuracy(model, points, labels):
    model.eval()
    right = 0
    with torch.no_grad():
        for begin in range(0, len(points), 256):
            right += (model(points[begin:begin + 256])[0].argmax(1) == labels[begin:begin + 256]).sum().item()
    model.train()
    return right / len(points)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("names")
    parser.add_argument("output")
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--batch", type=int, default=128)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    data = np.load(arguments.data)
    names = open(arguments.names).read().split()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_points, test_points = unpack(data["train_points"]).to(device), unpack(data["test_points"]).to(device)
    train_labels = torch.from_numpy(data["train_labels"].astype(np.int64)).to(device)
    test_labels = torch.from_numpy(data["test_labels"].astype(np.int64)).to(device)

    model = PointNet(len(names)).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    steps = len(train_points) // arguments.batch
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, arguments.epochs * steps)
    identity = torch.eye(64, device=device)
    began = time.time()
    for epoch in range(arguments.epochs):
        order = torch.randperm(len(train_points), device=device)
        for step in range(steps):
            chosen = order[step * arguments.batch:(step + 1) * arguments.batch]
            with torch.autocast(device, torch.bfloat16):
                logits, matrix = model(augment(train_points[chosen]))
            loss = F.cross_entropy(logits, train_labels[chosen], label_smoothing=0.1)
            loss = loss + 0.001 * (matrix @ matrix.mT - identity).norm(dim=(1, 2)).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        if epoch % 20 == 19 or epoch == arguments.epochs - 1:
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}, test accuracy "
                  f"{100 * accuracy(model, test_points, test_labels):.2f} %, {time.time() - began:.0f} s", flush=True)

    # Variances can be too small for half precision.
    tensors = {stipple_name(name): (value if ".norm." in name else value.half()).detach().contiguous().cpu()
               for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    config = {"variant": "torch", "classes": str(len(names)), "input_transform": "true", "feature_transform": "true",
              "dropout": "0.3"}
    save_file(tensors, arguments.output, metadata={
        "stipple.model": "pointnet-classifier", "stipple.config": json.dumps(config), "stipple.classes": json.dumps(names)})
    print(f"{arguments.output}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
