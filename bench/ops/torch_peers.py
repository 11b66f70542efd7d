#!/usr/bin/env python3
"""Our CUDA ops beside PyTorch. Called by scripts/gpu_bench.sh.

    torch_peers.py time [--quick] -o torch.json      times what one writes in PyTorch for the same shapes
    torch_peers.py table cuda.json [torch.json]      one Markdown table; cuda.json is of `stipple bench ops --json`
    torch_peers.py check                             runs every peer on tiny shapes on the CPU, for its values

PyTorch has no kernel for most of these ops; its entry is the usual composition (cdist, min, topk, ...) in the form that
is fastest, in chunks where the matrix would not fit. Best of at least five, timed with CUDA events, after a warm-up.
"""

import argparse
import json
import math
import os
import sys

# Milliseconds of the kernels that papers use, on the same machine (H200, CUDA 13.0, PyTorch 2.11).
PUBLISHED = {
    ("chamfer", "32 x 2048, with gradient"): (0.334, "ChamferDistancePytorch"),
    ("chamfer", "32 x 8192, with gradient"): (1.873, "ChamferDistancePytorch"),
    ("chamfer", "100k, with gradient"): (126.0, "ChamferDistancePytorch"),
    ("emd", "32 x 2048, gap 1 %"): (38.2, "PyTorchEMD, approximate"),
}

# What to reach, milliseconds.
TARGETS = {
    ("chamfer", "32 x 2048, with gradient"): 0.10,
    ("chamfer", "32 x 8192, with gradient"): 0.5,
    ("chamfer", "100k, with gradient"): 3.0,
    ("chamfer", "1M, with gradient"): 40.0,
    ("knn", "1M, k 16"): 15.0,
    ("knn", "32 x 2048, k 16"): 0.15,
    ("farthest_point_sample", "32 x 2048 -> 512"): 1.5,
    ("farthest_point_sample", "1M -> 16384"): 150.0,
    ("emd", "32 x 2048, gap 1 %"): 4.0,
    ("emd", "8192, gap 1 %"): 20.0,
}


def chunks(rows, columns, elements):
    """Row ranges whose matrix has at most so many elements."""
    step = max(1, min(rows, elements // max(1, columns)))
    return [(begin, min(begin + step, rows)) for begin in range(0, rows, step)]


class Peers:
    def __init__(self, torch, device, most=1 << 29):
        self.torch, self.device, self.most = torch, device, most  # most elements of a matrix: 2 GiB of float32
        self.generator = torch.Generator(device=device)
        self.generator.manual_seed(1)

    def rand(self, *shape):
        return self.torch.rand(*shape, device=self.device, generator=self.generator)

    def indices(self, bound, *shape):
        return self.torch.randint(0, bound, shape, device=self.device, generator=self.generator)

    # Each returns (function to time, how it does it).

    def chamfer(self, clouds, n):
        torch = self.torch
        a = self.rand(clouds, n, 3).requires_grad_(True)
        b = self.rand(clouds, n, 3).requires_grad_(True)

        def whole():
            a.grad = b.grad = None
            distances = torch.cdist(a, b)
            value = distances.min(2).values.square().mean() + distances.min(1).values.square().mean()
            value.backward()
            return value.detach()

        def by_indices():
            a.grad = b.grad = None
            value = 0.0
            for x, y in ((a, b), (b, a)):
                nearest = []
                with torch.no_grad():
                    for i in range(clouds):
                        for begin, end in chunks(n, n, self.most):
                            nearest.append(torch.cdist(x[i, begin:end], y[i]).argmin(1))
                pairs = torch.gather(y, 1, torch.cat(nearest).view(clouds, n, 1).expand(-1, -1, 3))
                value = value + (x - pairs).square().sum(2).mean()
            value.backward()
            return value.detach()

        if clouds * n * n <= self.most:
            return whole, "cdist, min, autograd"
        return by_indices, "cdist and argmin in chunks, autograd of the pairs"

    def knn(self, clouds, n, k, share=1):
        torch = self.torch
        points = self.rand(clouds, n, 3)

        def run():
            last = None
            for i in range(clouds):
                for begin, end in chunks(n // share, n, self.most):
                    last = torch.cdist(points[i, begin:end], points[i]).topk(k, dim=1, largest=False)
            return last.values[:, -1].mean()

        def batched():
            return torch.cdist(points, points).topk(k, dim=2, largest=False).values[..., -1].mean()

        if clouds * n * n <= self.most:
            return batched, "cdist, topk"
        return run, "cdist and topk in chunks" + (f", 1/{share} of the queries, scaled" if share > 1 else "")

    def fps(self, clouds, n, count):
        torch = self.torch
        points = self.rand(clouds, n, 3)
        rows = torch.arange(clouds, device=self.device)

        def run():
            kept = torch.zeros(clouds, count, dtype=torch.long, device=self.device)
            distances = torch.full((clouds, n), math.inf, device=self.device)
            latest = torch.zeros(clouds, dtype=torch.long, device=self.device)
            for i in range(count):
                kept[:, i] = latest
                offset = points - points[rows, latest].unsqueeze(1)
                torch.minimum(distances, offset.square().sum(2), out=distances)
                latest = distances.argmax(1)
            return kept

        return run, "loop over samples"

    def voxel(self, n, edge):
        torch = self.torch
        points = self.rand(n, 3) * 2.8

        def run():
            cells = torch.floor((points - points.min(0).values) / edge).long()
            extent = cells.max(0).values + 1
            keys = (cells[:, 2] * extent[1] + cells[:, 1]) * extent[0] + cells[:, 0]
            unique, inverse, counts = torch.unique(keys, return_inverse=True, return_counts=True)
            sums = torch.zeros(unique.numel(), 3, device=self.device).index_add_(0, inverse, points)
            return sums / counts.unsqueeze(1)

        return run, "unique, index_add"

    def sinkhorn(self, n, iterations, epsilon):
        torch = self.torch
        a, b = self.rand(n, 3), self.rand(n, 3)

        def run():
            cost = torch.cdist(a, b) / epsilon
            f = torch.zeros(n, device=self.device)
            g = torch.zeros(n, device=self.device)
            for _ in range(iterations):
                f = -torch.logsumexp(g[None, :] - cost, 1) - math.log(n)
                g = -torch.logsumexp(f[:, None] - cost, 0) - math.log(n)
            return (torch.exp(f[:, None] + g[None, :] - cost) * cost).sum() * epsilon

        return run, "logsumexp on the stored matrix"

    def gather(self, clouds, n, channels, m):
        torch = self.torch
        features = self.rand(clouds, n, channels)
        chosen = self.indices(n, clouds, m)
        rows = torch.arange(clouds, device=self.device).unsqueeze(1)
        return (lambda: features[rows, chosen]), "indexing"

    def scatter_add(self, clouds, n, channels, m):
        torch = self.torch
        values = self.rand(clouds * m, channels)
        offsets = torch.arange(clouds, device=self.device).repeat_interleave(m) * n
        rows = self.indices(n, clouds * m) + offsets
        out = torch.zeros(clouds * n, channels, device=self.device)
        return (lambda: out.zero_().index_add_(0, rows, values)), "index_add, in no fixed order"


def all_cases(peers, tiny=False):
    """(op, shape, how to prepare, factor on the time). Shapes are named as `stipple bench ops --list` does."""
    if tiny:
        return [("chamfer", "tiny", lambda: peers.chamfer(2, 64), 1),
                ("knn", "tiny", lambda: peers.knn(2, 64, 4), 1),
                ("farthest_point_sample", "tiny", lambda: peers.fps(2, 64, 16), 1),
                ("voxel_grid", "tiny", lambda: peers.voxel(1000, 0.5), 1),
                ("sinkhorn", "tiny", lambda: peers.sinkhorn(64, 50, 0.1), 1),
                ("gather", "tiny", lambda: peers.gather(2, 64, 8, 32), 1),
                ("scatter_add", "tiny", lambda: peers.scatter_add(2, 64, 8, 128), 1)]
    return [
        ("chamfer", "32 x 2048, with gradient", lambda: peers.chamfer(32, 2048), 1),
        ("chamfer", "32 x 8192, with gradient", lambda: peers.chamfer(32, 8192), 1),
        ("chamfer", "100k, with gradient", lambda: peers.chamfer(1, 100_000), 1),
        ("chamfer", "1M, with gradient", lambda: peers.chamfer(1, 1_000_000), 1),
        ("knn", "32 x 2048, k 16", lambda: peers.knn(32, 2048, 16), 1),
        ("knn", "100k, k 16", lambda: peers.knn(1, 100_000, 16), 1),
        ("knn", "1M, k 16", lambda: peers.knn(1, 1_000_000, 16, 32), 32),
        ("farthest_point_sample", "32 x 2048 -> 512", lambda: peers.fps(32, 2048, 512), 1),
        ("farthest_point_sample", "100k -> 4096", lambda: peers.fps(1, 100_000, 4096), 1),
        ("farthest_point_sample", "1M -> 16384", lambda: peers.fps(1, 1_000_000, 16384), 1),
        ("voxel_grid", "1M, edge 0.02", lambda: peers.voxel(1_000_000, 0.02), 1),
        ("sinkhorn", "2048, 100 iterations", lambda: peers.sinkhorn(2048, 100, 0.005), 1),
        ("gather", "32 x 4096 of 8192, 128 channels", lambda: peers.gather(32, 8192, 128, 4096), 1),
        ("scatter_add", "32 x 16384 to 2048, 64 channels", lambda: peers.scatter_add(32, 2048, 64, 16384), 1),
    ]


def time_case(torch, run, budget):
    """Best milliseconds of a call: many calls between two events where one is short."""

    def timed(calls):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / calls

    run()
    torch.cuda.synchronize()
    first = timed(1)
    calls = int(min(200, max(1, 5.0 / max(first, 1e-3))))
    times, spent = [first], first
    while (len(times) < 6 or spent < budget) and spent < 12 * budget:
        ms = timed(calls)
        times.append(ms)
        spent += ms * calls
    return min(times), len(times)


def copy_bandwidth(torch):
    source = torch.empty(1 << 28, device="cuda")
    target = torch.empty_like(source)
    ms, _ = time_case(torch, lambda: target.copy_(source), 100.0)
    return 2 * source.numel() * 4 / ms / 1e6


def assignment_cases():
    """SciPy's exact assignment on the host, the usual answer where PyTorch has none."""
    try:
        import time

        import numpy as np
        from scipy.optimize import linear_sum_assignment
        from scipy.spatial.distance import cdist
    except ImportError:
        return []
    rows = []
    for shape, n, clouds in (("32 x 2048, gap 1 %", 2048, 32),):
        rng = np.random.default_rng(1)
        a, b = rng.random((n, 3)), rng.random((n, 3))
        begin = time.perf_counter()
        linear_sum_assignment(cdist(a, b))
        ms = (time.perf_counter() - begin) * 1e3 * clouds
        rows.append({"op": "emd", "shape": shape, "ms": ms, "runs": 1,
                     "how": "SciPy, exact, on the CPU" + (", one cloud scaled" if clouds > 1 else "")})
    return rows


def run_time(args):
    import torch

    peers = Peers(torch, "cuda")
    rows = []
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(0),
              "copy_gb_per_s": copy_bandwidth(torch), "cases": rows}
    for op, shape, prepare, factor in all_cases(peers):
        try:
            run, how = prepare()
            ms, runs = time_case(torch, run, 100.0 if args.quick else 400.0)
            rows.append({"op": op, "shape": shape, "ms": ms * factor, "runs": runs, "how": how})
            print(f"{op} {shape}: {ms * factor:.3f} ms, {how}", file=sys.stderr)
        except Exception as error:  # one that fails, for memory say, must not take the others with it
            print(f"{op} {shape}: PyTorch failed: {error}", file=sys.stderr)
        run = None
        torch.cuda.empty_cache()
        with open(args.output, "w") as file:  # after each, so that a time limit leaves what there is
            json.dump(result, file, indent=2)
    rows += assignment_cases()
    with open(args.output, "w") as file:
        json.dump(result, file, indent=2)


def run_table(args):
    with open(args.ours) as file:
        ours = json.load(file)
    torch = {"cases": []}
    if args.torch and os.path.exists(args.torch):
        with open(args.torch) as file:
            torch = json.load(file)
    peers = {(case["op"], case["shape"]): case for case in torch["cases"]}
    bandwidth = ours["copy_gb_per_s"]
    print(f"{ours['device_name']}; a copy runs at {bandwidth:.0f} GB/s"
          + (f" (PyTorch {torch['torch']}: {torch['copy_gb_per_s']:.0f} GB/s)" if "torch" in torch else "") + ".\n")
    print("| op | shape | stipple ms | PyTorch ms | ratio | published ms | ratio | target ms | memory limit ms | x limit |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    used = {}
    for case in ours["cases"]:
        key, ms = (case["op"], case["shape"]), case["best_ms"]
        limit = case["bytes"] / (bandwidth * 1e6)
        peer, published = peers.pop(key, None), PUBLISHED.get(key)
        if peer:
            used.setdefault(peer["how"], []).append(case["op"])
        print(f"| {key[0]} | {key[1]} | {ms:.4g} "
              + (f"| {peer['ms']:.4g} | {peer['ms'] / ms:.1f} " if peer else "| - | - ")
              + (f"| {published[0]} | {published[0] / ms:.1f} " if published else "| - | - ")
              + (f"| {TARGETS[key]}{'' if ms <= TARGETS[key] else ' missed'} " if key in TARGETS else "| - ")
              + f"| {limit:.3g} | {ms / limit:.1f} |")
    print()
    for how, names in used.items():
        print(f"- PyTorch, {', '.join(dict.fromkeys(names))}: {how}")
    for (op, shape), (_, name) in PUBLISHED.items():
        print(f"- published, {op} {shape}: {name}")
    for op, shape in peers:
        print(f"- {op} {shape}: timed with PyTorch only, stipple has no case of this name")
    print("\nratio: how many times faster stipple is. Memory limit: inputs read once and outputs written once, at the "
          "copy's rate.")


def run_check(_):
    import torch

    for most in (1 << 29, 1000):  # at once, and in chunks: knn shows the last chunk only
        for op, shape, prepare, _ in all_cases(Peers(torch, "cpu", most), tiny=True):
            run, how = prepare()
            value = run()
            print(f"{op}, {how}: {tuple(value.shape)}, mean {float(value.double().mean()):.6f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    timing = commands.add_parser("time")
    timing.add_argument("--quick", action="store_true")
    timing.add_argument("-o", "--output", required=True)
    timing.set_defaults(run=run_time)
    table = commands.add_parser("table")
    table.add_argument("ours")
    table.add_argument("torch", nargs="?")
    table.set_defaults(run=run_table)
    commands.add_parser("check").set_defaults(run=run_check)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
