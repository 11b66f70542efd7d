#!/usr/bin/env python3
"""The baseline of part segmentation: a plain PyTorch PointNet with the classic recipe, on labelled PSB parts.

    command -p python3 bench/learn/pytorch_parts.py pack PSB_FOLDER parts.npz      # where h5py is
    python3 bench/learn/pytorch_parts.py train parts.npz --seed 0 [--seed 1 ...]   # where a GPU is

Network: 3 x 3 transform, 64-128-128, 128 x 128 transform, 512-2048 without ReLU before the max; global feature and
category beside the features of all layers (64+128+128+512+2048), 256-256-128-parts; batch norm everywhere, Xavier.
Recipe: 251 epochs, batches of 16 clouds of 2048 points, the last short one dropped, Adam 1e-3 with weight decay 1e-4,
halved every 20 epochs down to 1e-5, batch norm momentum 0.1 halved every 20 epochs down to 0.01, scale 0.8 to 1.25 and
shift 0.1, transform regulariser 1e-3. Last epoch, all points, no voting; TF32 products.

Prints instance and category mIoU: the likeliest part among those of the known category; IoU of every part of the
category, 1 where it is in neither; the mean of a shape's parts; the mean of shapes, and of the categories' means.
"""
import argparse
import json
import time

import numpy as np


def pack(folder, output):
    import h5py
    parts = json.load(open(f"{folder}/parts.json"))
    arrays = {"categories": list(parts), "begin": [p[0][0] for p in parts.values()], "end": [p[-1][0] + 1 for p in parts.values()]}
    for split in ("train", "test"):
        with h5py.File(f"{folder}/ply_data_{split}0.h5") as file:
            arrays[f"{split}_points"] = np.round(file["data"][:] * 16384).clip(-32768, 32767).astype(np.int16)
            arrays[f"{split}_labels"] = file["label"][:].reshape(-1).astype(np.uint8)
            arrays[f"{split}_parts"] = file["pid"][:].astype(np.uint8)
    np.savez_compressed(output, **arrays)


def train(path, seed, epochs):
    import torch
    import torch.nn.functional as F
    from torch import nn
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stored = np.load(path)
    load = lambda split: (torch.from_numpy(stored[f"{split}_points"].astype(np.float32) / 16384).to(device),
                          torch.from_numpy(stored[f"{split}_labels"].astype(np.int64)).to(device),
                          torch.from_numpy(stored[f"{split}_parts"].astype(np.int64)).to(device))
    begin, end, names = stored["begin"], stored["end"], stored["categories"]
    categories, n_parts = len(names), int(end[-1])

    class Layer(nn.Module):
        def __init__(self, inputs, outputs, relu=True):
            super().__init__()
            self.linear, self.norm, self.relu = nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), relu
            nn.init.xavier_normal_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)

        def forward(self, x):
            y = self.linear(x)
            y = self.norm(y.reshape(-1, y.shape[-1])).reshape(y.shape)
            return F.relu(y) if self.relu else y

    class TransformNet(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k
            self.points = nn.Sequential(Layer(k, 64), Layer(64, 128), Layer(128, 1024))
            self.cloud = nn.Sequential(Layer(1024, 512), Layer(512, 256), nn.Linear(256, k * k))

        def forward(self, x):
            return self.cloud(self.points(x).amax(1)).view(-1, self.k, self.k) + torch.eye(self.k, device=x.device)

    class Segmenter(nn.Module):
        def __init__(self):
            super().__init__()
            self.t3, self.t128 = TransformNet(3), TransformNet(128)
            self.l1, self.l2, self.l3 = Layer(3, 64), Layer(64, 128), Layer(128, 128)
            self.l4, self.l5 = Layer(128, 512), Layer(512, 2048, relu=False)
            self.head = nn.Sequential(Layer(2048 + categories + 64 + 128 + 128 + 512 + 2048, 256), Layer(256, 256),
                                      Layer(256, 128), nn.Linear(128, n_parts))

        def forward(self, points, label):
            x1 = self.l1(points @ self.t3(points))
            x2 = self.l2(x1)
            x3 = self.l3(x2)
            matrix = self.t128(x3)
            x4 = self.l4(x3 @ matrix)
            x5 = self.l5(x4)
            cloud = torch.cat([x5.amax(1), F.one_hot(label, categories).float()], 1)
            cloud = cloud.unsqueeze(1).expand(-1, points.shape[1], -1)
            return self.head(torch.cat([cloud, x1, x2, x3, x4, x5], 2)), matrix

    points, labels, parts = load("train")
    model = Segmenter().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    identity = torch.eye(128, device=device)
    started = time.time()
    for epoch in range(epochs):
        rate, momentum = max(1e-3 * 0.5 ** (epoch // 20), 1e-5), max(0.1 * 0.5 ** (epoch // 20), 0.01)
        for group in optimizer.param_groups:
            group["lr"] = rate
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.momentum = momentum
        model.train()
        order = torch.randperm(len(points), device=device)
        for i in range(0, len(points) - 15, 16):
            chosen = order[i:i + 16]
            scale = torch.empty(16, 1, 1, device=device).uniform_(0.8, 1.25)
            x = points[chosen] * scale + torch.empty(16, 1, 3, device=device).uniform_(-0.1, 0.1)
            logits, matrix = model(x, labels[chosen])
            loss = F.cross_entropy(logits.reshape(-1, n_parts), parts[chosen].reshape(-1))
            loss = loss + 1e-3 * torch.linalg.norm(matrix @ matrix.transpose(1, 2) - identity, dim=(1, 2)).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    seconds = time.time() - started

    points, labels, parts = load("test")
    model.eval()
    scores = {name: [] for name in names}
    right = 0
    with torch.no_grad():
        for i in range(len(points)):
            logits = model(points[i:i + 1], labels[i:i + 1])[0][0]
            c = int(labels[i])
            found, truth = logits[:, begin[c]:end[c]].argmax(1) + int(begin[c]), parts[i]
            right += int((found == truth).sum())
            ious = []
            for part in range(begin[c], end[c]):
                a, b = found == part, truth == part
                union = int((a | b).sum())
                ious.append(1.0 if union == 0 else int((a & b).sum()) / union)
            scores[names[c]].append(float(np.mean(ious)))
    every = [iou for of_category in scores.values() for iou in of_category]
    print(json.dumps({"seed": seed, "epochs": epochs, "seconds": round(seconds, 1),
                      "instance_miou": round(float(np.mean(every)), 4),
                      "category_miou": round(float(np.mean([np.mean(s) for s in scores.values()])), 4),
                      "point_accuracy": round(right / parts.numel(), 4),
                      "categories": {str(name): round(float(np.mean(s)), 4) for name, s in scores.items()}}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder")
    packing.add_argument("output")
    training = commands.add_parser("train")
    training.add_argument("data")
    training.add_argument("--seed", type=int, action="append")
    training.add_argument("--epochs", type=int, default=251)
    options = parser.parse_args()
    if options.command == "pack":
        pack(options.folder, options.output)
    for seed in (options.seed or [0]) if options.command == "train" else []:
        train(options.data, seed, options.epochs)


if __name__ == "__main__":
    main()
