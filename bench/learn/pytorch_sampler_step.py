#!/usr/bin/env python3
"""Times training steps of SampleNet in PyTorch on a GPU, the peer of `stipple train samplenet`.

    python3 bench/learn/pytorch_sampler_step.py [--task cls,reg,rec] [--way eager,graph] [--steps 50]

The published networks and losses on data that stand still: classification (1024 -> 32 points, batch 32, a frozen PointNet with the
input transform), registration (1024 -> 64, batch 32, a frozen PCRNet on both clouds), reconstruction (2048 -> 64, batch 50, a frozen
autoencoder, chamfer distance by cdist). TF32. The best of three rounds of --steps steps.
"""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


def convs(widths, norm):
    parts = []
    for inputs, outputs in zip(widths, widths[1:]):
        parts += [nn.Conv1d(inputs, outputs, 1)] + ([nn.BatchNorm1d(outputs)] if norm else []) + [nn.ReLU(True)]
    return nn.Sequential(*parts)


def dense(widths, norm):
    parts = []
    for inputs, outputs in zip(widths, widths[1:]):
        parts += [nn.Linear(inputs, outputs)] + ([nn.BatchNorm1d(outputs)] if norm else []) + [nn.ReLU(True)]
    return nn.Sequential(*parts)


class Sampler(nn.Module):
    def __init__(self, task, count, neighbours):
        super().__init__()
        is_rec = task == "rec"
        self.count, self.neighbours = count, neighbours
        self.points = convs([3, 64, 128, 128, 256, 128] if is_rec else [3, 64, 64, 64, 128, 128], True)
        self.cloud = dense([128, 256, 256] if is_rec else [128, 256, 256, 256], not is_rec)
        self.out = nn.Sequential(nn.Linear(256, 3 * count), *([nn.BatchNorm1d(3 * count)] if task == "cls" else []))
        self.temperature = nn.Parameter(torch.ones(1))

    def forward(self, p):  # [batch, n, 3] -> simplified, projected
        x = self.points(p.transpose(1, 2)).max(2)[0]
        q = self.out(self.cloud(x)).view(-1, self.count, 3)
        distance = torch.cdist(q, p).square()
        near, index = distance.topk(self.neighbours, dim=2, largest=False)
        grouped = p.gather(1, index.flatten(1).unsqueeze(2).expand(-1, -1, 3)).view(*index.shape, 3)
        weights = F.softmax(-(grouped - q.unsqueeze(2)).square().sum(3) / self.temperature.square().clamp_min(1e-4), dim=2)
        return q, (weights.unsqueeze(3) * grouped).sum(2)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = convs([3, 64, 128, 1024], True)
        self.matrix = nn.Sequential(dense([1024, 512, 256], True), nn.Linear(256, 9))
        self.points = convs([3, 64, 128, 1024], True)
        self.head = nn.Sequential(dense([1024, 512, 256], True), nn.Linear(256, 40))

    def forward(self, x):
        x = x.transpose(1, 2)
        matrix = self.matrix(self.transform(x).max(2)[0]).view(-1, 3, 3) + torch.eye(3, device=x.device)
        return self.head(self.points(torch.bmm(matrix, x)).max(2)[0])


class PcrNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = convs([3, 64, 64, 64, 128, 1024], False)
        self.head = nn.Sequential(dense([2048, 1024, 1024, 512, 512, 256], False), nn.Linear(256, 7))

    def forward(self, source, target):
        features = [self.points(x.transpose(1, 2)).max(2)[0] for x in (target, source)]
        w, x, y, z = F.normalize(self.head(torch.cat(features, 1))[:, :4], dim=1).unbind(1)
        rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 2 * (x * y + w * z), 1 - 2 * (x * x + z * z),
                2 * (y * z - w * x), 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
        return torch.stack(rows, 1).view(-1, 3, 3)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = convs([3, 64, 128, 128, 256, 128], True)
        self.cloud = nn.Sequential(dense([128, 256, 256], False), nn.Linear(256, 3 * 2048))

    def forward(self, x):
        return self.cloud(self.points(x.transpose(1, 2)).max(2)[0]).view(-1, 2048, 3)


def chamfer(a, b):
    distance = torch.cdist(a, b).square()
    return distance.min(2)[0].mean() + distance.min(1)[0].mean()


def simplification(p, q):
    distance = torch.cdist(q, p).square()
    to_cloud = distance.min(2)[0]
    return to_cloud.mean() + to_cloud.max(1)[0].mean() + distance.min(1)[0].mean()


class Step:
    def __init__(self, task, way):
        torch.manual_seed(0)
        batch, points, count, neighbours = {"cls": (32, 1024, 32, 7), "reg": (32, 1024, 64, 8), "rec": (50, 2048, 64, 16)}[task]
        self.task = task
        self.sampler = Sampler(task, count, neighbours).cuda().train()
        self.frozen = {"cls": PointNet, "reg": PcrNet, "rec": Autoencoder}[task]().cuda().eval()
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.sampler.parameters(), lr=1e-3, fused=True, capturable=way == "graph")
        self.points = torch.randn(batch, points, 3, device="cuda")
        self.labels = torch.randint(40, (batch,), device="cuda")
        self.rotation = torch.linalg.qr(torch.randn(batch, 3, 3, device="cuda"))[0]
        self.turned = torch.bmm(self.points, self.rotation.transpose(1, 2))
        self.identity = torch.eye(3, device="cuda")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        self.graph = None
        if way == "graph":
            self.capture()

    def loss(self):
        if self.task == "reg":
            both = torch.cat([self.points, self.turned])
            q, r = self.sampler(both)
            source, target = r.chunk(2)
            found = self.frozen(source, target)
            task = (torch.bmm(found, self.rotation.transpose(1, 2)) - self.identity).square().sum((1, 2)).mean()
            task = task + chamfer(torch.bmm(source, found.transpose(1, 2)), target)
            return task + 0.01 * simplification(both, q) + 0.01 * self.sampler.temperature.square().sum()
        q, r = self.sampler(self.points)
        made = self.frozen(r)
        task = F.cross_entropy(made, self.labels) if self.task == "cls" else chamfer(made, self.points)
        return task + 0.01 * simplification(self.points, q) + 0.01 * self.sampler.temperature.square().sum()

    def run(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss().backward()
        self.optimizer.step()

    def capture(self):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="cls,reg,rec")
    parser.add_argument("--way", default="eager,graph")
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    for task in arguments.task.split(","):
        for way in arguments.way.split(","):
            step = Step(task, way)
            for _ in range(5):
                step()
            best = float("inf")
            for _ in range(3):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(arguments.steps):
                    step()
                torch.cuda.synchronize()
                best = min(best, (time.perf_counter() - begin) / arguments.steps)
            print(f"PyTorch {torch.__version__:14} {task} {way:6}: {1e3 * best:8.3f} ms a step", flush=True)
            del step
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
