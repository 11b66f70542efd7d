#!/usr/bin/python3
"""PointNet on the CPU beside PyTorch and onnxruntime, in one run.

    cpu_peers.py [--stipple build/release/bin/stipple] [--model M.safetensors] [--batch 1 32] [--points 1024]
                 [--threads N] [--seconds S] [--json out.json]

Peers, all with the same random weights (both T-nets, 40 classes), in evaluation mode:
  torch conv1d   as the published programs write it: Conv1d over [B, 3, N], batch norm apart
  torch linear   the same with Linear over [B * N, C]
  torch folded   Linear with batch norm folded in: as good as PyTorch gets without its compiler
  onnxruntime    the graph that `stipple engine export --convolutions` writes, its fastest form, batch norm folded; by
                 onnxruntime-node (tests/network/onnx_runtime after scripts/bootstrap.sh test)
PyTorch multiplies with the system's BLAS: without libopenblas0 its linear forms are several times slower.
PyTorch's logits are compared with stipple's fp32 before it is timed; onnxruntime's are by the tests. Times are medians of
at least 5 runs.
A peer that is not installed is left out. Prints one Markdown table.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    types = {"F32": np.float32, "F16": np.float16}
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]]).astype(np.float32).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def median_time(run, seconds):
    for _ in range(3):
        run()
    times = []
    begin = time.perf_counter()
    while len(times) < 10 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


class TorchPointNet:
    """The published network, from stipple's weights."""

    def __init__(self, torch, weights, form):
        self.torch, self.form = torch, form
        self.w = {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in weights.items()}
        if form == "folded":
            for name in [n[: -len(".norm.weight")] for n in list(self.w) if n.endswith(".norm.weight")]:
                scale = self.w[name + ".norm.weight"] / torch.sqrt(self.w[name + ".norm.running_var"] + 1e-5)
                bias = self.w.get(name + ".bias", torch.zeros_like(scale))
                self.w[name + ".bias"] = (bias - self.w[name + ".norm.running_mean"]) * scale + self.w[name + ".norm.bias"]
                self.w[name + ".weight"] = self.w[name + ".weight"] * scale[:, None]

    def layer(self, name, x, relu):
        f = self.torch.nn.functional
        weight, bias = self.w[name + ".weight"], self.w.get(name + ".bias")
        x = f.conv1d(x, weight[:, :, None], bias) if x.dim() == 3 and self.form == "conv1d" else f.linear(x, weight, bias)
        if self.form != "folded" and name + ".norm.weight" in self.w:
            shape = x.shape
            if self.form == "linear":
                x = x.reshape(-1, shape[-1])
            x = f.batch_norm(x, self.w[name + ".norm.running_mean"], self.w[name + ".norm.running_var"],
                             self.w[name + ".norm.weight"], self.w[name + ".norm.bias"], False, 0.1, 1e-5)
            x = x.reshape(shape)
        return f.relu(x, inplace=True) if relu else x

    def pool(self, x):
        return x.max(2)[0] if self.form == "conv1d" else x.max(1)[0]

    def transform(self, x, matrix, k):
        matrix = matrix.view(-1, k, k)
        return self.torch.bmm(x.transpose(2, 1), matrix).transpose(2, 1) if self.form == "conv1d" else self.torch.bmm(x, matrix)

    def tnet(self, prefix, x, k):
        for name in ("conv1", "conv2", "conv3"):
            x = self.layer(f"{prefix}.{name}", x, True)
        x = self.pool(x)
        for name in ("fc1", "fc2"):
            x = self.layer(f"{prefix}.{name}", x, True)
        return self.layer(f"{prefix}.fc3", x, False) + self.torch.eye(k).reshape(1, k * k)

    def __call__(self, x):
        if self.form == "conv1d":
            x = x.transpose(2, 1).contiguous()
        x = self.transform(x, self.tnet(self.names["stn"], x, 3), 3)
        x = self.layer(self.names["conv1"], x, True)
        x = self.transform(x, self.tnet(self.names["fstn"], x, 64), 64)
        x = self.layer(self.names["conv2"], x, True)
        x = self.pool(self.layer(self.names["conv3"], x, False))
        for name, relu in ((self.names["fc1"], True), (self.names["fc2"], True), (self.names["fc3"], False)):
            x = self.layer(name, x, relu)
        return x


def find_names(weights):
    """Where the parts are in the file: by the last word of their names and their shapes."""
    found = {}
    for name in weights:
        if not name.endswith(".weight") or ".norm." in name:
            continue
        layer = name[: -len(".weight")]
        prefix, _, last = layer.rpartition(".")
        if last == "fc3" and weights[name].shape[0] == 9:
            found["stn"] = prefix
        elif last == "fc3" and weights[name].shape[0] == 4096:
            found["fstn"] = prefix
    for name in weights:
        if not name.endswith(".weight") or ".norm." in name:
            continue
        layer = name[: -len(".weight")]
        prefix, _, last = layer.rpartition(".")
        if prefix not in (found["stn"], found["fstn"]):
            found[last] = layer
    return found


def stipple_logits(args, model, points, folder):
    """fp32 logits of the clouds by stipple itself."""
    paths = []
    for i, cloud in enumerate(points):
        path = os.path.join(folder, f"{i:04d}.npy")
        np.save(path, cloud)
        paths.append(path)
    engine, out = os.path.join(folder, "fp32.engine"), os.path.join(folder, "logits.npz")
    run = [args.stipple, "--device", "cpu", "--threads", str(args.threads), "-q"]
    subprocess.run(run + ["engine", "build", model, "-o", engine, "--max-batch", str(len(points)), "--max-points",
                          str(args.points)], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(run + ["engine", "run", engine, *paths, "--points", "0", "--no-normalise", "-o", out], check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(out)["logits"]


def time_stipple(args, model):
    command = [args.stipple, "engine", "bench", model, "--device", "cpu", "--threads", str(args.threads), "--json", "-q",
               "--precision", "fp32,bf16,int8", "--batch", ",".join(map(str, args.batch)), "--points", str(args.points),
               "--seconds", str(args.seconds)]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return result["rows"]


def time_torch(args, weights, clouds, reference):
    try:
        import torch
    except ImportError:
        print("without PyTorch: not installed", file=sys.stderr)
        return
    torch.set_num_threads(args.threads)
    for form in ("conv1d", "linear", "folded"):
        network = TorchPointNet(torch, weights, form)
        network.names = find_names(weights)
        with torch.no_grad():
            difference = np.abs(network(torch.from_numpy(clouds)).numpy() - reference).max()
            if difference > 1e-3:
                sys.exit(f"torch {form}: logits differ by {difference}")
            for batch in args.batch:
                x = torch.from_numpy(np.repeat(clouds[:1], batch, 0))
                yield f"torch {form} fp32 ({torch.__version__})", batch, median_time(lambda: network(x), args.seconds)


def time_onnxruntime(args, model, folder):
    onnx = os.path.join(folder, "model.onnx")
    subprocess.run([args.stipple, "engine", "export", model, "-o", onnx, "--convolutions", "-q"], check=True,
                   stdout=subprocess.DEVNULL)
    for batch in args.batch:
        result = subprocess.run(["node", os.path.join(HERE, "onnxruntime_peer.mjs"), onnx, str(batch), str(args.points),
                                 str(args.threads), str(args.seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if result.returncode != 0:
            print("without onnxruntime:", result.stderr.decode().strip().splitlines()[-1], file=sys.stderr)
            return
        yield "onnxruntime fp32", batch, json.loads(result.stdout)["median_ms"] / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stipple", default="build/release/bin/stipple")
    parser.add_argument("--model")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or os.path.join(folder, "random.safetensors")
        if not args.model:
            subprocess.run([args.stipple, "engine", "new", "pointnet-classifier", "--seed", "1", "-o", model, "-q"], check=True,
                           stdout=subprocess.DEVNULL)
        weights = read_safetensors(model)
        clouds = np.random.default_rng(1).uniform(-0.6, 0.6, (4, args.points, 3)).astype(np.float32)
        reference = stipple_logits(args, model, clouds, folder)
        for row in time_stipple(args, model):
            rows.append({"name": f"stipple {row['precision']}", "batch": row["batch"], "ms": row["latency_ms"]["median"],
                         "of_limit": row["of_limit"], "limit": row["limit"]})
        for peer in (time_torch(args, weights, clouds, reference), time_onnxruntime(args, model, folder)):
            for name, batch, seconds in peer:
                rows.append({"name": name, "batch": batch, "ms": 1e3 * seconds})
    base = {row["batch"]: row["ms"] for row in rows if row["name"] == "stipple fp32"}
    print(f"PointNet, both T-nets, {args.points} points, {args.threads} threads\n")
    print("| program | batch | ms | clouds/s | stipple fp32 is | of the measured peak |\n|---|--:|--:|--:|--:|--:|")
    for row in rows:
        of_limit = f"{100 * row['of_limit']:.0f} % of {row['limit']}" if row.get("of_limit") else ""
        print(f"| {row['name']} | {row['batch']} | {row['ms']:.2f} | {1e3 * row['batch'] / row['ms']:.1f} "
              f"| {row['ms'] / base[row['batch']]:.2f} x | {of_limit} |")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
