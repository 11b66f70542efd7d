#!/usr/bin/env python3
"""Writes the tables of figures in docs/performance.md and README.md from the files in bench/results.

    scripts/performance_page.py            writes the tables between the marks in both pages
    scripts/performance_page.py --check    fails where a page differs from the results, or a figure is not found
    scripts/performance_page.py --root F   works on the checkout in folder F

A row below says what is measured, and names a results file, a section of it, and the cells with our figure and those of the peers.
Ratios are computed from the cells. Date, commit and machine come from the nearest line above the cells of the form

    Measured at COMMIT (DATE) on MACHINE.

in the section, or else in one around it; the date is that of the commit. "Measured before COMMIT" says that the commit of the
measurement was not recorded, and names the one that brought the figures. Needs Python 3 alone.
"""
import argparse
import dataclasses
import pathlib
import re
import sys

MEASURED = re.compile(r"^Measured (at|before) ([0-9a-f]{7,10}) \((\d{4}-\d\d-\d\d)\) on (.+)\.$", re.M)


@dataclasses.dataclass
class Row:
    what: str
    file: str
    section: str  # how its heading begins
    ours: str  # "ROW @ COLUMN": its first cells joined by ", ", and the head of the column
    unit: str
    command: str
    peers: dict = dataclasses.field(default_factory=dict)  # name -> "ROW", "ROW @ COLUMN" or "ROW @ COLUMN @ SECTION"
    note: tuple = ()  # a text with {}, and the cell that it is filled with
    in_readme: bool = False


BENCH = "make bench"
IO, LAS = ("io.md", "Reading and writing"), ("io.md", "LAS files")
TWO, ONE = " @ 2 threads ms", " @ 1 thread ms"
SEGMENT = ("geometry.md", "Planes and clusters")
PLANE, CLUSTERS = "one plane, Open3D with 1000 iterations", "clusters, room, radius 0.05, 10 points"
CPU_NETS, CPU_COMMAND, RATE = ("engine.md", "PointNet beside"), "bench/engine/cpu_peers.py", " @ clouds/s"
GPU_OPS, GPU_OPS_COMMAND = ("ops-cuda.md", "Point operations on the H200"), "scripts/gpu_bench.sh"
GPU_NETS, GPU_NETS_COMMAND = ("engine-cuda.md", "stipple"), "stipple engine bench --device cuda"
SAME = "{} % the same winner as in fp32"
STEP, STEP_COMMAND = ("learn.md", "A step on a GPU"), "bench/learn/gpu_bench.sh"


def on_gpu(what, row):
    """A row of the table of point operations, which has a column for each program."""
    return Row(what, *GPU_OPS, f"{row} @ stipple ms", "ms", GPU_OPS_COMMAND, {"PyTorch": f"{row} @ PyTorch ms"})


TABLES = {
    "Files and pictures": [
        Row("read a binary PLY, 5M points", *IO, "binary PLY, 5M points, stipple @ read ms", "ms", BENCH,
            {"Open3D": "binary PLY, 5M points, Open3D", "PCL": "binary PLY, 5M points, PCL"}, in_readme=True),
        Row("write it; stipple flushes and renames, the peers do not", *IO, "binary PLY, 5M points, stipple @ write ms", "ms", BENCH,
            {"Open3D": "binary PLY, 5M points, Open3D", "PCL": "binary PLY, 5M points, PCL"}),
        Row("memory to read it, payload 60 MB", *IO, "stipple, peak @ MB", "MB", BENCH),
        Row("read a text PLY, 1M points", *IO, "ascii PLY, 1M points, stipple @ read ms", "ms", BENCH,
            {"Open3D": "ascii PLY, 1M points, Open3D", "PCL": "ascii PLY, 1M points, PCL"}),
        Row("crop a LAS of 50M points (1.0 GB) in at most 40 MB of memory", *LAS, "`crop --box` @ s", "s", "stipple crop"),
        Row("split it into tiles", *LAS, "`split --tile` @ s", "s", "stipple split"),
        Row("merge ten LAS files into one of 50M points", *LAS, "`merge` of ten files @ s", "s", "stipple merge"),
        Row("draw 1M points at 1024 x 1024, with the PNG", "picture.md", "Drawing", "1M points @ sum", "ms", BENCH),
    ],
    "Points, on the CPU": [
        Row("16 nearest neighbours of 1M points, index built", "ops.md", "knn, k 16, torus 1M", "stipple" + TWO, "ms", BENCH,
            {"FLANN": "FLANN KDTreeSingle", "CGAL": "CGAL Orthogonal_k, best of 4", "PCL": "PCL KdTreeFLANN, best of 4",
             "nanoflann": "nanoflann, best of 3", "Open3D": "Open3D core.nns, best of 3"}, in_readme=True),
        Row("farthest point sampling, 100k to 4096, exact; peers on one thread", "ops.md", "farthest point sampling",
            "stipple" + TWO, "ms", BENCH, {"Open3D": "Open3D" + ONE, "PCL": "PCL FarthestPointSampling" + ONE}, in_readme=True),
        Row("voxel grid, 1M points; peers on one thread", "ops.md", "voxel grid", "stipple" + TWO, "ms", BENCH,
            {"PCL": "PCL VoxelGrid" + ONE, "Open3D": "Open3D" + ONE}),
        Row("chamfer distance, 100k against 100k", "ops.md", "chamfer, both ways, torus 100k", "stipple" + TWO, "ms", BENCH,
            {"nanoflann": "nanoflann", "Open3D": "Open3D"}),
        Row("exact earth mover's distance, 2048 points; SciPy on one thread", "ops.md", "EMD, 2048 points", "stipple, exact" + TWO,
            "ms", BENCH, {"SciPy": "SciPy linear_sum_assignment" + ONE}),
        Row("normals of 100k points", "geometry.md", "Normals, 100k", "stipple" + TWO, "ms", BENCH, {"PCL": "PCL", "Open3D": "Open3D"}),
        Row("consistent orientation of 100k normals", "geometry.md", "Consistent orientation", "stipple" + TWO, "ms", BENCH,
            {"Open3D": "Open3D"}),
        Row("the largest plane of 1M points; Open3D with 1000 iterations", *SEGMENT, f"{PLANE} @ stipple s (command)", "s",
            "bench/geometry/segment_peers.py", {"Open3D": f"{PLANE} @ Open3D s"}),
        Row("clusters of 1M points (DBSCAN)", *SEGMENT, f"{CLUSTERS} @ stipple s (command)", "s",
            "bench/geometry/segment_peers.py", {"Open3D": f"{CLUSTERS} @ Open3D s"}),
    ],
    "Meshes and registration, on the CPU": [
        Row("closest points on a mesh, 100k to 100k faces, index built", "geometry.md", "Closest point, 100k", "stipple" + TWO, "ms",
            BENCH, {"Embree": "Embree", "Open3D": "Open3D", "CGAL": "CGAL AABB tree"}, in_readme=True),
        Row("first hits of 1M random rays", "geometry.md", "First hit, 1M random", "stipple" + TWO, "ms", BENCH,
            {"Embree": "Embree, packets of 4"}),
        Row("first hits of 1M rays of a camera; Embree lets 42 pass between faces", "geometry.md", "First hit, 1000 x 1000",
            "stipple" + TWO, "ms", BENCH, {"Embree": "Embree, packets of 4"}),
        Row("Poisson disk, 8192 samples of a mesh, exact count", "geometry.md", "Poisson disk", "stipple" + TWO, "ms", BENCH,
            {"Open3D": "Open3D (no threads)"}),
        Row("ICP, 100k points, 30 steps, point to plane", "geometry.md", "ICP, point-to-plane", "stipple @ 2 threads s", "s", BENCH,
            {"Open3D": "Open3D", "PCL": "PCL"}, in_readme=True),
        Row("generalised ICP of two LiDAR sweeps, one thread", "geometry.md", "ICP beside small_gicp", "stipple, generalised @ mean ms",
            "ms", "icp_lidar_bench DATA 3 50", {"small_gicp": "small_gicp, GICP"}),
    ],
    "Networks, on the CPU": [
        Row("PointNet, both T-nets, 1024 points: fp32, batch 1", *CPU_NETS, "stipple fp32, 1" + RATE, "clouds/s", CPU_COMMAND,
            {"onnxruntime": "onnxruntime fp32, 1", "PyTorch as published": "torch conv1d fp32 (1.13.0a0), 1"}, in_readme=True),
        Row("fp32, batch 32", *CPU_NETS, "stipple fp32, 32" + RATE, "clouds/s", CPU_COMMAND,
            {"onnxruntime": "onnxruntime fp32, 32", "PyTorch as published": "torch conv1d fp32 (1.13.0a0), 32"}),
        Row("bf16, batch 1", *CPU_NETS, "stipple bf16, 1" + RATE, "clouds/s", CPU_COMMAND),
        Row("bf16, batch 32", *CPU_NETS, "stipple bf16, 32" + RATE, "clouds/s", CPU_COMMAND),
        Row("int8, batch 1", *CPU_NETS, "stipple int8, 1" + RATE, "clouds/s", CPU_COMMAND),
        Row("int8, batch 32", *CPU_NETS, "stipple int8, 32" + RATE, "clouds/s", CPU_COMMAND),
    ],
    "On a GPU": [
        on_gpu("16 nearest neighbours, 32 clouds of 2048", "knn, 32 x 2048, k 16"),
        on_gpu("16 nearest neighbours of 1M points; PyTorch's time is of a 32nd of the queries, scaled", "knn, 1M, k 16"),
        on_gpu("chamfer distance with gradient, 32 clouds of 2048", "chamfer, 32 x 2048, with gradient"),
        on_gpu("chamfer distance with gradient, 1M points", "chamfer, 1M, with gradient"),
        Row("distance of 1M points to 100k faces, index built", "geometry.md", "On the H200",
            "closest point, 1M queries in random order, index included @ best (ms)", "ms", "geometry_times cuda 7"),
        Row("first hits of 10M random rays", "geometry.md", "On the H200", "first hit, 10M random rays @ best (ms)", "ms",
            "geometry_times cuda 7"),
        Row("PointNet, both T-nets, 1024 points: fp16, batch 1024", *GPU_NETS, "fp16, 1024" + RATE, "clouds/s", GPU_NETS_COMMAND,
            {"PyTorch, folded, as a graph": "pointnet, graph-folded-half, 1024 @ clouds/s @ PyTorch, the same"}, in_readme=True),
        Row("fp16, batch 4096", *GPU_NETS, "fp16, 4096" + RATE, "clouds/s", GPU_NETS_COMMAND),
        Row("int8, batch 4096", *GPU_NETS, "int8, 4096" + RATE, "clouds/s", GPU_NETS_COMMAND,
            note=(SAME, "int8, 4096 @ same winner (%)")),
        Row("fp8, batch 4096", *GPU_NETS, "fp8, 4096" + RATE, "clouds/s", GPU_NETS_COMMAND,
            note=(SAME, "fp8, 4096 @ same winner (%)")),
        Row("training step of the same, batch 1024; stipple's with data and augmentation", *STEP,
            "stipple train, fp16 @ batch 1024: clouds/s", "clouds/s", STEP_COMMAND,
            {"PyTorch, compiled": "PyTorch 2.11, torch.compile"}, in_readme=True),
        Row("training step of the same, batch 64", *STEP, "stipple train, fp16 @ batch 64: clouds/s", "clouds/s", STEP_COMMAND,
            {"PyTorch as a graph": "PyTorch 2.11, CUDA graph"}),
        Row("PointNet trained on ModelNet40, 250 epochs with two views of each cloud", "learn.md", "With and without",
            "3 x 3 transform alone (the one that ships) @ training (s)", "s", "stipple train pointnet-cls --set run.precision=fp16"),
        Row("radiance field of lego, 100 photographs, 160^3", "radiance.md", "What made it fast", "160^3, final @ time (s)", "s",
            "stipple study radiance", note=("{} dB", "160^3, final @ PSNR (dB)")),
    ],
}

# What falls short, for README.md: the figure, and what is published.
LIMITS = [
    Row("objects of 15 classes cut from scans of rooms, given their class (`classify`)", "real.md", "Objects cut", "`pointnet-cls` @ right (%)", "%", "",
        {"PointNet, a like task, about": "PointNet on PointDA-10, published (about)"}),
    Row("total error of the ground of aerial scans, 15 sites, one setting (`ground`)", "real.md", "Ground of", "`stipple ground` @ total error (%)", "%",
        "", {"SMRF": "SMRF"}),
    Row("views of a room from photographs by a phone (`radiance train --mode quality`)", "real.md", "Photographs of", "quality @ PSNR (dB)", "dB", ""),
]


class Results:
    """The files of bench/results as sections with their tables."""

    def __init__(self, folder):
        self.folder, self.files = folder, {}

    def sections(self, file):
        """[(level, heading, text until the next heading)] of a file."""
        if file not in self.files:
            found, fenced = [(0, "", [])], False
            for line in (self.folder / file).read_text(encoding="utf-8").splitlines():
                fenced ^= line.startswith("```")
                heading = None if fenced else re.match(r"(#+) (.*)", line)
                if heading:
                    found.append((len(heading[1]), heading[2], []))
                else:
                    found[-1][2].append(line)
            self.files[file] = [(level, name, "\n".join(lines)) for level, name, lines in found]
        return self.files[file]

    def place(self, file, section):
        """The index of the only section whose heading begins so."""
        found = [i for i, (_, name, _) in enumerate(self.sections(file)) if name.startswith(section)]
        if len(found) != 1:
            raise LookupError(f"{file}: {len(found)} sections begin with {section!r}")
        return found[0]

    def measured(self, file, section):
        """(at or before, commit, date, machine) of a section."""
        sections, at = self.sections(file), self.place(file, section)
        level = sections[at][0] + 1
        for i in range(at, -1, -1):
            if sections[i][0] < level:  # the section itself, then those around it
                level = sections[i][0]
                if line := MEASURED.search(sections[i][2]):
                    return line.groups()
        raise LookupError(f"{file}: {section}: no line \"Measured at COMMIT (DATE) on MACHINE.\"")

    def cell(self, row, name, column=""):
        """The text of a cell of the row's section, or of another one, without marks of emphasis. Without a column in its name
        it is in the one that is given."""
        parts = name.split(" @ ")
        wanted = parts[0]
        column = parts[1] if len(parts) > 1 else column
        section = parts[2] if len(parts) > 2 else row.section
        _, heading, text = self.sections(row.file)[self.place(row.file, section)]
        values, columns = [], []
        for line in text.splitlines() + [""]:
            cells = [c.strip().replace("**", "") for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
            if not cells:
                columns = []
            elif not columns:
                columns = cells
            elif column in columns and wanted in (", ".join(cells[:n]) for n in range(1, len(cells))):
                values.append(cells[columns.index(column)])
        if len(values) != 1:
            raise LookupError(f"{row.file}: {heading}: {len(values)} cells for row {wanted!r}, column {column!r}")
        return values[0]


def number_of(text):
    """The number at the beginning of a cell."""
    found = re.match(r"[-+]?[\d,]*\.?\d+(e[-+]?\d+)?", text)
    if not found:
        raise LookupError(f"{text!r} is no number")
    return float(found[0].replace(",", ""))


def plain(text):
    """A number as the page shows it: as the results have it, large ones with separators and without a fraction."""
    value = number_of(text)
    return f"{value:,.0f}" if value >= 1000 else re.match(r"[\d.e+-]+", text)[0]


def times(ratio):
    return f"{ratio:.0f} x" if ratio >= 10 else f"{ratio:.1f} x" if ratio >= 2 else f"{ratio:.2f} x"


def anchor_of(heading):
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")


def figures_of(row, results):
    """Our figure as text, and [(ratio, text)] of the peers, the fastest first."""
    column = row.ours.split(" @ ")[1]
    ours = results.cell(row, row.ours)
    figure = f"{plain(ours)} {row.unit}"
    if row.note:
        figure += ", " + row.note[0].format(results.cell(row, row.note[1]))
    peers = []
    for name, cell in row.peers.items():
        theirs = results.cell(row, cell, column)
        ratio = number_of(theirs) / number_of(ours)
        ratio = 1 / ratio if row.unit.endswith("/s") else ratio
        peers.append((ratio, f"{name} {plain(theirs)} ({times(ratio)})"))
    return figure, sorted(peers)


def measured_text(row, results):
    word, commit, date, machine = results.measured(row.file, row.section)
    return f"{'before ' * (word == 'before')}{commit}, {date}, {machine}"


def link_text(row, results, prefix):
    heading = results.sections(row.file)[results.place(row.file, row.section)][1]
    title = heading.split(": `")[0]
    return f"[{title}]({prefix}bench/results/{row.file}#{anchor_of(heading)})"


def line_of_page(row, results):
    figure, peers = figures_of(row, results)
    return (f"| {row.what} | {figure} | {', '.join(text for _, text in peers) or '-'} | {measured_text(row, results)} "
            f"| {link_text(row, results, '../')} | `{row.command}` |\n")


def line_of_readme(row, results):
    figure, peers = figures_of(row, results)
    return f"| {row.what} | {figure} | {peers[0][1]} | {measured_text(row, results)} | `{row.command}` |\n"


def line_of_limits(row, results):
    ours, column = results.cell(row, row.ours), row.ours.split(" @ ")[1]
    peers = ", ".join(f"{name} {results.cell(row, cell, column)} {row.unit}" for name, cell in row.peers.items())
    return f"| {row.what} | {ours} {row.unit} | {peers or '-'} | {measured_text(row, results)} |\n"


PAGE_HEAD = ("| work | stipple | peers, and how many times as fast stipple is | measured | section of the results | command |\n"
             "|---|---|---|---|---|---|\n")
LIMITS_HEAD = "| work | stipple | published | measured |\n|---|---|---|---|\n"
README_HEAD = "| work | stipple | the fastest peer, and how many times as fast stipple is | measured | command |\n|---|---|---|---|---|\n"


def refused_files(root):
    """Files of the corpora that a reader must refuse: those with a message, but for orientations of photographs, which are read."""
    lines = [line.split("\t") for name in ("expected.tsv", "packed.tsv")
             for line in (root / "tests/corpus" / name).read_text(encoding="utf-8").splitlines()]
    return sum(message != "ok" and not message.startswith("orientation ") for _, message in lines)


def page_tables(root):
    """{page: {name of its marks: what stands between them}}"""
    results = Results(root / "bench/results")
    page = "".join(f"## {heading}\n\n{PAGE_HEAD}" + "".join(line_of_page(row, results) for row in rows) + "\n"
                   for heading, rows in TABLES.items())
    page += (f"## Damaged files\n\n{refused_files(root)} files in [tests/corpus](../tests/corpus) are damaged or hostile. Each is refused "
             "with the message that it must give (`make test`).\n")
    readme = README_HEAD + "".join(line_of_readme(row, results) for rows in TABLES.values() for row in rows if row.in_readme)
    limits = LIMITS_HEAD + "".join(line_of_limits(row, results) for row in LIMITS)
    return {"docs/performance.md": {"all": page}, "README.md": {"peers": readme, "limits": limits}}


END = "<!-- end -->\n"


def replaced(page, name, text, path):
    """The page with this text between the marks of that name."""
    mark = f"<!-- {name} by scripts/performance_page.py -->\n"
    begin = page.find(mark) + len(mark)
    end = page.find(END, begin)
    if page.count(mark) != 1 or end < 0:
        raise LookupError(f"{path}: wanted is one {mark.strip()} with an {END.strip()} after it")
    return page[:begin] + "\n" + text + "\n" + page[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    different = 0
    try:
        for name, tables in page_tables(arguments.root).items():
            path = arguments.root / name
            old = new = path.read_text(encoding="utf-8")
            for mark, text in tables.items():
                new = replaced(new, mark, text, name)
            if arguments.check:
                for before, after in zip(old.splitlines() + [""] * new.count("\n"), new.splitlines()):
                    if before != after:
                        print(f"{name} differs from bench/results: run scripts/performance_page.py\n- {before}\n+ {after}")
                        break
                different += old != new
            elif old != new:
                path.write_text(new, encoding="utf-8")
                print(f"wrote {name}")
    except LookupError as error:
        sys.exit(f"performance_page.py: {error}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
