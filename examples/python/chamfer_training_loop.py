#!/usr/bin/env python3
"""Chamfer in a training loop: a network learns to bend a torus into a scan, and pictures show how.

    python3 examples/python/chamfer_training_loop.py [SCAN] [OUTPUT_FOLDER] [--steps N] [--device cuda]

By default the knot of examples/data. Needs torch, any version from 1.13 on.
"""
import argparse
import math
import pathlib

import numpy as np
import stipple.torch as st
import torch
from stipple import io, picture

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("scan", nargs="?", default=pathlib.Path(__file__).resolve().parents[1] / "data" / "knot.ply")
parser.add_argument("output", nargs="?", default="chamfer_training_loop")
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--points", type=int, default=1024)
parser.add_argument("--device", default="cpu")
arguments = parser.parse_args()
output = pathlib.Path(arguments.output)
output.mkdir(exist_ok=True)
torch.manual_seed(0)

# The scan, thinned evenly, in a box of edge 2. from_numpy shares the memory of the file's numbers.
scan = torch.from_numpy(np.array(io.load_cloud(arguments.scan).positions)).to(arguments.device)
scan = (scan - (scan.amin(0) + scan.amax(0)) / 2) / (scan.amax(0) - scan.amin(0)).max() * 2
target = st.gather(scan, st.farthest_point_sample(scan, arguments.points).indices)

# Points of a torus, and the network that moves them. Sines of the angles let it bend the ring more than once.
angles = 2 * math.pi * torch.rand(arguments.points, 2, device=arguments.device)
ring = torch.cat([torch.sin(k * angles) for k in (1, 2, 3)] + [torch.cos(k * angles) for k in (1, 2, 3)], dim=1)
model = torch.nn.Sequential(torch.nn.Linear(12, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
                            torch.nn.Linear(128, 3)).to(arguments.device)
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.steps)

losses, seen = [], {}
for step in range(arguments.steps):
    optimizer.zero_grad()
    points = model(ring)
    loss = st.chamfer_loss(points, target)
    if 2 * step < arguments.steps:  # at first also the price of moving all points onto all others: it spreads them
        loss = loss + 0.3 * st.emd(points, target, relative=0.05).cost
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(float(st.chamfer_loss(points.detach(), target)))
    if step in (0, arguments.steps // 20, arguments.steps - 1):
        seen[step + 1] = points.detach().cpu().numpy()
within = float((st.chamfer(points.detach(), target).b_to_a.distances_sq < 0.05**2).float().mean())
print(f"chamfer {losses[0]:.4f} at first, {losses[-1]:.5f} after {arguments.steps} steps; "
      f"{100 * within:.0f} % of the scan is within 0.05 of a point")

panels = [{"cloud": io.PointCloud(np.array(cloud)), "caption": f"after step {step}"} for step, cloud in seen.items()]
panels.append({"cloud": io.PointCloud(target.cpu().numpy()), "caption": "the scan"})
figure = picture.draw_figure(panels, panel_width=320, panel_height=320, columns=4, legend=False)
figure.image.save(output / "chamfer_training_loop.jpg", overwrite=True)
chart = picture.draw_chart([{"name": "chamfer distance", "x": list(range(1, len(losses) + 1)), "y": losses}],
                           x="step", y={"label": "chamfer distance, squared", "logarithmic": True}, title="Loss")
chart.save(output / "loss.png", overwrite=True)
