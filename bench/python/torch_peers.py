#!/usr/bin/env python3
"""chamfer, knn and farthest point sampling, forward and backward, beside torch's own formulations.

    PYTHONPATH=build/ci/python command -p python3 bench/python/torch_peers.py
    PYTHONPATH=build/gpu/python python3 bench/python/torch_peers.py          # on a GPU too, where there is one

The best of several runs, after one that does not count. torch's ways: cdist and min, cdist and topk, the loop of
PointNet++ for farthest points.
"""
import time

import stipple
import stipple.torch as st
import torch


def seconds(call, device, runs):
    def once():
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin
    once()
    return min(once() for _ in range(runs))


def torch_chamfer(a, b):
    d = torch.cdist(a, b).square()
    return (d.min(2)[0].mean(1) + d.min(1)[0].mean(1)).mean()


def torch_knn(points, k):
    return torch.cdist(points, points).topk(k, dim=2, largest=False)[0].square().sum()


def torch_farthest(points, samples):
    b, n, _ = points.shape
    least = torch.full((b, n), float("inf"), device=points.device)
    chosen = torch.zeros(b, samples, dtype=torch.long, device=points.device)
    rows = torch.arange(b, device=points.device)
    last = chosen[:, 0]
    for i in range(1, samples):
        least = torch.minimum(least, (points - points[rows, last].unsqueeze(1)).square().sum(2))
        last = least.argmax(1)
        chosen[:, i] = last
    return chosen


def backward(function):
    def run(*tensors):
        for tensor in tensors:
            tensor.grad = None
        function(*tensors).backward()
    return run


def cases(device):
    sizes = [(4, 2048), (1, 8192)] if device == "cpu" else [(32, 2048), (8, 16384)]
    for b, n in sizes:
        a, other = (torch.rand(b, n, 3, device=device, requires_grad=True) for _ in range(2))
        rows = (("chamfer, both ways", backward(st.chamfer_loss), backward(torch_chamfer), (a, other)),
                ("knn, k = 16", backward(lambda p: st.knn(p, 16).distances_sq.sum()),
                 backward(lambda p: torch_knn(p, 16)), (a,)))
        for name, ours, theirs, tensors in rows:
            yield f"{name}, forward and backward", b, n, lambda: ours(*tensors), lambda: theirs(*tensors)
        points = a.detach()
        yield ("farthest points, n / 8", b, n, lambda: st.farthest_point_sample(points, n // 8),
               lambda: torch_farthest(points, n // 8))


def main():
    devices = ["cpu"] + (["cuda"] if stipple.has_cuda and torch.cuda.is_available() else [])
    print(f"torch {torch.__version__}, stipple {stipple.__version__}, {torch.get_num_threads()} threads")
    print("| device | what | clouds | points | stipple ms | torch ms | times |\n|---|---|--:|--:|--:|--:|--:|")
    for device in devices:
        for name, b, n, ours, theirs in cases(device):
            runs = 3 if device == "cpu" else 20
            mine, other = 1e3 * seconds(ours, device, runs), 1e3 * seconds(theirs, device, runs)
            print(f"| {device} | {name} | {b} | {n:,} | {mine:.2f} | {other:.2f} | {other / mine:.1f} |", flush=True)


if __name__ == "__main__":
    main()
