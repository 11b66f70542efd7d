#!/usr/bin/env python3
"""Writes what docs/architecture.md and CONTRIBUTING.md say of folders, from the tree, the table below and the lines in CMake that link.

    scripts/folder_map.py            writes the tables between the marks, and docs/images/architecture.svg
    scripts/folder_map.py --check    fails where one of them differs, a folder has no line below, or a line has no folder
    scripts/folder_map.py --root F   works on the checkout in folder F

Every folder of the library, of its Python module and of the repository has its description here and nowhere else.
Needs Python 3 alone.
"""
import argparse
import pathlib
import re
import sys
import textwrap

FOLDERS = {
    # The library, by layers.
    "stipple/core": "errors, devices, arrays and views, clouds, threads, random numbers, files, JSON and TOML, log, progress",
    "stipple/core/arrays": "memory, element types and shapes; clouds and their attributes",
    "stipple/core/checkpoint": "files that a run continues from",
    "stipple/core/cuda": "checks, events and memory of the CUDA runtime",
    "stipple/core/fields": "the tables that describe members of option and result structs: set, checked, written as TOML and JSON",
    "stipple/core/files": "atomic files and folders, run folders, failures made on purpose",
    "stipple/core/process": "errors, threads, interrupts, log, progress, profiles",
    "stipple/core/text": "numbers as text, JSON, TOML, names that are nearly right",
    "stipple/io": "one file for each format: `parse(bytes)` is pure, `load(path)` wraps it; limits",
    "stipple/io/colmap": "cameras, images and points of COLMAP",
    "stipple/io/common": "tables of points, polygons, text, ZIP, protocol buffers: what several formats use",
    "stipple/io/las": "LAS, whole or in chunks",
    "stipple/io/laz": "LAZ: the decoder",
    "stipple/ops": "the hot loops on points, each on CPU and CUDA; `registry.cpp` lists them",
    "stipple/ops/common": "sorts, prefix sums, vector code and checks that several ops use",
    "stipple/ops/distance": "chamfer, Hausdorff, Sinkhorn",
    "stipple/ops/emd": "earth mover's distance, exact and by auction",
    "stipple/ops/grouping": "gather, group, interpolate, and their gradients",
    "stipple/ops/products": "matrix products of training: Gram matrices, norms of rows and columns, a layer with its maximum",
    "stipple/ops/sampling": "farthest points, voxel grids, Poisson disks, random and dense subsets",
    "stipple/ops/search": "nearest neighbours, balls and radii, indices of points",
    "stipple/ops/training": "dropout, lengths of gradients, the update of an optimiser",
    "stipple/network": "a network as data: layers, shapes, weights, text",
    "stipple/network/diagram": "a network as SVG",
    "stipple/network/kinds": "the description of each kind of layer: inputs, types, text, parameters, ONNX",
    "stipple/network/onnx": "a network as an ONNX file",
    "stipple/picture": "the renderer of every figure; line and bar charts",
    "stipple/picture/chart": "frames, axes and legends of charts",
    "stipple/picture/font": "the glyphs",
    "stipple/picture/render": "points and triangles as pixels, shading, visibility",
    "stipple/data": "data sets by layout, lists of clouds, names of classes and parts, augmentation, batches made ahead",
    "stipple/data/augmentation": "random motions and choices of an item",
    "stipple/data/layouts": "one file for each layout of a data set; `data_set.cpp` lists them",
    "stipple/data/packed": "a data set as one small file",
    "stipple/data/save": "writers of layouts",
    "stipple/bench": "data, clock and cases of `stipple bench ops`",
    "stipple/geometry": "meshes and clouds: closest points, rays, winding numbers, normals, surfaces, ground, registration",
    "stipple/geometry/cloud": "normals, outliers, duplicates, statistics, rings of a sweep",
    "stipple/geometry/edit": "transformations, regions, expressions over attributes, merging, splitting",
    "stipple/geometry/mesh": "checks, parts, edges, normals, simplification, voxels",
    "stipple/geometry/query": "closest points and rays by Embree or by a hierarchy of our own",
    "stipple/geometry/registration": "ICP, search of any pose, confidence, pose graphs, odometry",
    "stipple/geometry/segment": "planes, clusters, ground",
    "stipple/geometry/surface": "surfaces from points, points from surfaces",
    "stipple/geometry/watertight": "closed surfaces of any triangles",
    "stipple/geometry/winding": "winding numbers and signed distances",
    "stipple/models": "functions that return a network: PointNet, PU-Flow, samplers, PCRNet, autoencoder; `registry.cpp` lists them",
    "stipple/models/common": "parts that several models use",
    "stipple/models/puflow": "the parts of PU-Flow",
    "stipple/metrics": "scores by the convention of a paper; `registry.cpp` lists them",
    "stipple/engine": "compiles a network for a device and a precision, and runs it",
    "stipple/engine/calibrate": "ranges of activations for int8 and fp8",
    "stipple/engine/cpu": "the plan of a program on the CPU, and its steps",
    "stipple/engine/cpu/chain": "the kernels of fused products, a file for each set of instructions",
    "stipple/engine/cuda": "the kernels on a GPU, CUDA graphs",
    "stipple/engine/file": "engine files",
    "stipple/engine/kinds": "how the engine lowers and runs each kind of layer",
    "stipple/engine/lower": "from a network to a program: norms folded, layers fused, memory planned",
    "stipple/engine/program": "the program: steps and memory, and its checks",
    "stipple/engine/run": "contexts, clocks and profiles of steps",
    "stipple/radiance": "voxel radiance fields: scenes, training, rendering, evaluation, export; no LibTorch",
    "stipple/radiance/cpu": "training on the CPU",
    "stipple/radiance/cuda": "training and rendering on a GPU",
    "stipple/radiance/cuda/reference": "the step-by-step path that `stipple study radiance` compares with",
    "stipple/radiance/evaluate": "PSNR and SSIM of a field",
    "stipple/radiance/export": "points and meshes of a field",
    "stipple/radiance/field": "the field and its file",
    "stipple/radiance/march": "rays through bricks, opacity",
    "stipple/radiance/render": "views on the CPU, paths of cameras",
    "stipple/radiance/scene": "photographs with their cameras: COLMAP and transforms.json",
    "stipple/radiance/train": "the schedule, options, checkpoints and logs of training",
    "stipple/tasks": "what people ask for, from clouds and a model to a result: classify, segment, sample, upsample, register, evaluate, clean, measure, edit",
    "stipple/tasks/radiance_study": "runs and tables of `stipple study radiance`",
    "stipple/tasks/registration_study": "runs and tables of `stipple study registration`",
    "stipple/tasks/sample": "critical points of a classifier",
    "stipple/tasks/sampling_study": "runs and tables of `stipple study sampling`",
    "stipple/tasks/scans": "many scans of a place: which pairs to register, which parts hold together",
    "stipple/tasks/upsample": "tiles, candidates, support, choice and refinement of new points",
    "stipple/tasks/upsampling_study": "runs and tables of the upsampling studies, the ruler and the ring test",
    "stipple/learn": "what trains, the only folder that sees LibTorch: networks and ops under autograd, losses, the training loop",
    "stipple/learn/distributed": "ranks that train together",
    "stipple/learn/evaluate": "runs each kind of layer on tensors; `layer.cpp` lists them",
    "stipple/learn/flows": "normalizing flows and their log-determinants",
    "stipple/learn/functions": "ops under autograd",
    "stipple/learn/labels": "data and losses of classifiers and segmenters",
    "stipple/learn/loop": "steps, CUDA graphs, logs and state of a run",
    "stipple/learn/sampling": "objectives of learned samplers, and of the networks that judge them",
    "stipple/learn/upsampling": "objectives of upsamplers, and the surfaces that they learn from",
    "stipple/cli": "one file for each command: parse, call the library, print; a library, and the two programs",
    "stipple/cli/common": "options, configuration, JSON, tables, files: what commands use",
    "stipple/cli/data": "`stipple data`",
    "stipple/cli/edit": "`crop`, `filter`, `merge`, `split`, `transform`",
    "stipple/cli/engine": "`stipple engine`",
    "stipple/cli/evaluate": "`stipple evaluate`",
    "stipple/cli/learn": "the program `stipple-learn`: `train` and what else needs LibTorch",
    "stipple/cli/measure": "`distance`, `stats`",
    "stipple/cli/mesh": "`stipple mesh`",
    "stipple/cli/metrics": "`stipple metrics`",
    "stipple/cli/radiance": "`stipple radiance`",
    "stipple/cli/registration": "options and inputs of `stipple register`",
    "stipple/cli/segment": "`planes`, `clusters`, `ground`",
    "stipple/cli/study": "`stipple study`",
    "stipple/cli/weights": "`stipple weights`",
    # Around the library.
    "python": "the Python module: bindings, and the package around them",
    "python/bindings": "one source for each subject, in folders as in `stipple/`; no logic of their own",
    "python/stipple": "the package: what is written in Python",
    "python/stipple/torch": "gradients of the ops for PyTorch",
    "tests": "mirrors `stipple/`, with a test program for each folder of the library",
    "tests/corpus": "damaged and hostile files, with the message that each must give",
    "tests/docs": "runs the commands of README and `docs/`, and checks links, pictures and generated pages",
    "tests/python": "tests of the Python module",
    "tests/samples": "valid files that fuzzers begin with",
    "tests/support": "oracles, child processes, folders and shapes that tests share",
    "bench": "mirrors `stipple/`: benchmarks beside other libraries",
    "bench/python": "what a call from Python costs",
    "bench/results": "what was measured, with commands and commits",
    "bench/upsampling": "the protocol of the upsampling tables",
    "fuzz": "a libFuzzer program for each parser",
    "examples": "programs, scripts and small data",
    "recipes": "what `stipple train` trains, as TOML",
    "weights": "the networks that are shipped",
    "scripts": "what `make` runs, and what writes generated pages",
    "cmake": "targets, presets and packages",
    "docs": "the pages that README links to",
}
MIRRORS = ("tests", "bench")  # their folders that stipple/ has too need no line
UNTRACKED = {"build", "tmp", "data", "node_modules", "__pycache__"}  # at the root, as .gitignore has them


def subfolders(folder):
    return sorted(f for f in folder.iterdir() if f.is_dir() and f.name[0] not in "._" and f.name != "__pycache__")


def folders_of_tree(root):
    """The folders that need a line."""
    found = [f.name for f in subfolders(root) if f.name not in UNTRACKED and f.name != "stipple"]
    found += [str(f.relative_to(root)) for f in (root / "stipple").rglob("*")
              if f.is_dir() and "__pycache__" not in f.parts]
    found += [f"python/{f.name}" for f in subfolders(root / "python")]
    found += [f"python/stipple/{f.name}" for f in subfolders(root / "python/stipple")]
    found += [f"{mirror}/{f.name}" for mirror in MIRRORS for f in subfolders(root / mirror)
              if not (root / "stipple" / f.name).is_dir()]
    return found


def links_of_tree(root):
    """({folder: the folders that it links}, {program: the folders that it links}) as CMakeLists.txt have them."""
    folders, programs = {}, {}
    for path in sorted((root / "stipple").glob("*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        names = dict(re.findall(r"set_target_properties\(\s*(\w+)\s+PROPERTIES\s+OUTPUT_NAME\s+([\w-]+)", text))
        links = folders.setdefault(path.parent.name, set())
        for call in re.findall(r"(?:stipple_library|target_link_libraries)\(([^)]*)\)", text):
            words = call.split()
            uses = {word.split("::")[-1].removeprefix("stipple_") for word in words[1:]
                    if re.fullmatch(r"stipple::\w+|stipple_(bench|cli|learn)", word)}
            if words[0] in names:
                programs[names[words[0]]] = uses
            else:
                links |= uses - {path.parent.name}
    return folders, programs


def levels_of(links):
    """{name: 0 for what links nothing, else one more than the highest that it links}; links must not go in circles."""
    levels = {}
    while len(levels) < len(links):
        ready = [n for n in links if n not in levels and all(used in levels for used in links[n])]
        if not ready:
            sys.exit(f"folder_map.py: links go in a circle among {', '.join(sorted(set(links) - set(levels)))}")
        for name in ready:
            levels[name] = 1 + max((levels[used] for used in links[name]), default=-1)
    return levels


def direct(links):
    """The links that no other one implies."""
    def reach(name):
        return set().union(*({used} | reach(used) for used in links[name]))
    return {name: {u for u in used if not any(u in reach(other) for other in used if other != u)} for name, used in links.items()}


def architecture_text(links, programs):
    levels, nearest = levels_of(links), direct({**links, **programs})
    order = sorted(links, key=lambda name: (levels[name], name))

    def uses(name):
        return ", ".join(sorted(nearest[name], key=order.index))
    text = (f"{len(links)} folders and {len(programs)} programs: " +
            ", ".join(f"`{name}` links {uses(name)}" for name in sorted(programs)) + ". Links that follow from others are left out.\n\n")
    text += "| folder | what it holds | links |\n|---|---|---|\n"
    for name in order:
        text += f"| **[{name}](../stipple/{name})** | {FOLDERS[f'stipple/{name}']} | {uses(name)} |\n"
        for path in sorted(p for p in FOLDERS if p.startswith(f"stipple/{name}/")):
            text += f"| [{path.removeprefix('stipple/')}](../{path}) | {FOLDERS[path]} | |\n"
    return text


def contributing_text(links):
    levels = levels_of(links)
    top = [f"stipple/{name}" for name in sorted(links, key=lambda name: (levels[name], name))]
    top += [path for path in FOLDERS if not path.startswith("stipple/")]
    text = "```\n"
    for path in top:
        lines = textwrap.wrap(FOLDERS[path].replace("`", ""), 95)
        text += f"{path + '/':<23}{lines[0]}\n" + "".join(f"{'':<23}{line}\n" for line in lines[1:])
    return text + "```\n"


def svg_text(links, programs):
    """The folders in layers; a line for each link that no other one implies, around the boxes between its ends."""
    nodes = direct({**links, **programs})
    below = levels_of(nodes)
    top = max(below.values())
    users = {name: [n for n in nodes if name in nodes[n]] for name in nodes}
    level = {}
    for name in sorted(nodes, key=lambda n: -below[n]):  # as near to what uses it as can be
        level[name] = min((level[n] - 1 for n in users[name]), default=top)
    rows = [[n for n in sorted(nodes) if level[n] == i] for i in range(top + 1)]
    pieces, paths = set(), []  # a long line is cut at every row that it passes
    for name in sorted(nodes):
        for used in sorted(nodes[name]):
            stops = [used] + [(used, name, i) for i in range(level[used] + 1, level[name])] + [name]
            for i, stop in enumerate(stops[1:-1], level[used] + 1):
                rows[i].append(stop)
            pieces |= set(zip(stops, stops[1:]))
            paths.append(stops)
    ups = {a: [y for x, y in pieces if x == a] for a in sum(rows, [])}
    downs = {a: [x for x, y in pieces if y == a] for a in sum(rows, [])}
    width = {a: 34 if isinstance(a, tuple) else 128 for a in sum(rows, [])}
    x = {}

    middle = 20 + max(sum(width[a] for a in row) for row in rows) / 2

    def place(row):
        at = middle - sum(width[a] for a in row) / 2
        for a in row:
            x[a] = at + width[a] / 2
            at += width[a]
    for row in rows:
        place(row)
    for sweep in range(24):  # every row in the order of the means of its neighbours
        order = rows[1:] if sweep % 2 == 0 else rows[-2::-1]
        for row in order:
            near = downs if sweep % 2 == 0 else ups
            row.sort(key=lambda a: (sum(x[b] for b in near[a]) / len(near[a]) if near[a] else x[a], str(a)))
            place(row)

    def y(i):
        return 40 + (top - i) * 74
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * middle:.0f} {y(0) + 40}" font-family="sans-serif" font-size="14">',
             '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
             '<path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>', f'<rect width="{2 * middle:.0f}" height="{y(0) + 40}" fill="#fff"/>']
    for stops in paths:
        points = []
        for i, stop in reversed(list(enumerate(stops, level[stops[0]]))):
            half = 18 if isinstance(stop, tuple) else 0
            points += [(x[stop], y(i) - half), (x[stop], y(i) + half)] if half else [(x[stop], y(i) + (18 if stop == stops[-1] else -19))]
        lines.append(f'<path d="M{" L".join(f"{a:.0f} {b:.0f}" for a, b in points)}" fill="none" stroke="#777" marker-end="url(#tip)"/>')
    for name in sorted(nodes):
        fill = "#fde8c8" if name in programs else "#e2ecf7"
        lines.append(f'<rect x="{x[name] - 58:.0f}" y="{y(level[name]) - 18}" width="116" height="36" rx="6" fill="{fill}" stroke="#444"/>'
                     f'<text x="{x[name]:.0f}" y="{y(level[name]) + 5}" text-anchor="middle">{name}</text>')
    return "\n".join(lines + ["</svg>"]) + "\n"


BEGIN, END = "<!-- by scripts/folder_map.py -->\n", "<!-- end -->"


def replaced(page, text, name):
    """The page with this text between the marks."""
    begin = page.find(BEGIN)
    end = page.find(END, begin)
    if begin < 0 or end < 0:
        sys.exit(f"folder_map.py: {name}: wanted is {BEGIN.strip()} with an {END} after it")
    return page[:begin] + BEGIN + "\n" + text + "\n" + page[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    root = arguments.root
    tree = folders_of_tree(root)
    problems = [f"{f}: has no line in scripts/folder_map.py" for f in tree if f not in FOLDERS]
    problems += [f"{f}: there is no such folder; scripts/folder_map.py describes it" for f in FOLDERS if not (root / f).is_dir()]
    if problems:
        sys.exit("\n".join(problems))
    links, programs = links_of_tree(root)
    texts = {"docs/architecture.md": architecture_text(links, programs), "CONTRIBUTING.md": contributing_text(links)}
    for name, text in texts.items():
        texts[name] = replaced((root / name).read_text(encoding="utf-8"), text, name)
    texts["docs/images/architecture.svg"] = svg_text(links, programs)
    for name, text in texts.items():
        if (root / name).read_text(encoding="utf-8") == text:
            continue
        if arguments.check:
            problems.append(f"{name} differs from the tree: run scripts/folder_map.py")
        else:
            (root / name).write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
