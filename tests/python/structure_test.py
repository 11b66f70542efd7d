"""Every public function of the folders that are bound has a binding, a docstring, a stub and an example."""
import ast
import os
import re
import sys

import pytest
import stipple
import unbound
from stipple import ops

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import python_docs  # noqa: E402
import python_stubs  # noqa: E402

#: folder -> what of its public headers has no binding, and why. A folder that is bound gets an entry.
EXCLUDED = {
    "ops": {
        "curve_cell": "a piece of kernels",
        "gumbel_noise": "a piece of kernels",
        "hilbert_code": "a piece of kernels",
        "names_row": "a piece of kernels",
        "random_sample_below": "a piece of kernels",
        "random_sample_bits": "a piece of kernels",
        "registry_markdown": "writes docs/ops.md; registry() has the same as data",
        "require_inverse": "a check that other ops make",
        "sinkhorn_epsilon": "shared by the implementations of sinkhorn",
        "sinkhorn_looks": "shared by the implementations of sinkhorn",
        "spread_bits": "a piece of kernels",
        "spread_few_bits": "a piece of kernels",
    },
    "io": unbound.IO,
    "geometry": unbound.GEOMETRY,
    "picture": unbound.PICTURE,
    "metrics": unbound.METRICS,
    "network": unbound.NETWORK,
    "models": unbound.MODELS,
    "engine": unbound.ENGINE,
    "radiance": unbound.RADIANCE,
    "tasks": unbound.TASKS,
}

#: Made of several functions of C++, in Python or in a binding.
OWN = {"ops": {"knn_graph"}, "io": {"parse", "load_npy", "load_npz", "save_npz"}, "geometry": {"merge_clouds"},
       "picture": set(), "tasks": {"holes_names", "kernel_names", "method_names"}}  # words beside enumerations


def functions(folder):
    """Of the public headers, without tables of fields: they describe options and results that bindings take and give."""
    _, found = python_docs.folder_docs(os.path.join(ROOT, "stipple", folder))
    return {name for _, _, kind, name, _, _ in found if kind == "function" and not name.endswith("_fields")}


def bound(folder):
    module = getattr(stipple, folder)
    return {n for n in module.__all__ if callable(getattr(module, n)) and not isinstance(getattr(module, n), type)}


def examples():
    """The text of all examples: calls in tests/python/examples, and in the blocks of docs/python.md."""
    text = ""
    folder = os.path.join(ROOT, "tests", "python", "examples")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text += file.read()
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        text += "\n".join(re.findall(r"```python\n(.*?)```", file.read(), re.S))
    return text


@pytest.mark.parametrize("folder", sorted(EXCLUDED))
def test_every_public_function_is_bound(folder):
    public = functions(folder)
    assert len(public) > 20  # a test that looks at nothing passes always
    excluded = set(EXCLUDED[folder])
    assert excluded <= public, excluded - public
    assert public - excluded - bound(folder) == set()
    assert bound(folder) - public - OWN.get(folder, set()) == set()
    assert excluded & bound(folder) == set()


@pytest.mark.parametrize("folder", sorted(EXCLUDED))
def test_every_function_has_a_docstring_a_stub_and_an_example(folder):
    module, text = getattr(stipple, folder), examples()
    stub_file = os.path.join(os.path.dirname(stipple.__file__), folder + ".pyi")
    with open(stub_file, encoding="utf-8") as file:
        stub = {node.name for node in ast.parse(file.read()).body if isinstance(node, ast.FunctionDef)}
    for name in sorted(bound(folder)):
        document = getattr(module, name).__doc__ or ""
        assert len(document.split("\n", 1)[-1]) > 20 and "no documentation" not in document, name
        assert name in stub, name
        assert re.search(r"\b%s\.%s\(" % (folder, name), text), f"{folder}.{name} is called in no example"
        assert getattr(module, name).__module__ == "stipple." + folder


def test_stubs_are_those_of_the_module():
    for name, text in python_stubs.stubs().items():
        ast.parse(text)
        with open(os.path.join(os.path.dirname(stipple.__file__), name), encoding="utf-8") as file:
            assert file.read() == text, f"{name}: build the target stipple_python again"
    assert os.path.exists(os.path.join(os.path.dirname(stipple.__file__), "py.typed"))


def test_docstrings_are_the_contracts():
    docs, _ = python_docs.folder_docs(os.path.join(ROOT, "stipple", "ops"))
    assert docs["knn"].strip() in ops.knn.__doc__
    assert "ties go to the lowest" in ops.knn.__doc__
    assert "Raises stipple.ArgumentError when k is out of range" in ops.knn.__doc__
    assert 'norm = "euclidean"' in ops.emd.__doc__ and "progressive = False" in ops.poisson_disk.__doc__
    assert "chosen  (Points that are chosen already" in ops.farthest_point_sample.__doc__
    assert "relative = 0.01  (the search ends" in ops.emd.__doc__  # options with their comments


def test_the_parser_of_headers_sees_what_is_there():
    header = """
/// A.
/// More.
void one(int x,
         int y = {});
int two(int);
namespace cuda {
void hidden(int);
}
struct Options {
    float size = 2;  // of it
};
/// B.
inline int three(const Options& options) {
    return four(options);
}
"""
    found = [(comment, kind, name) for comment, kind, name, _, _ in python_docs.declarations(header)]
    assert found == [("A.\nMore.", "function", "one"), ("A.\nMore.", "function", "two"), ("", "struct", "Options"),
                     ("B.", "function", "three")]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_pages_of_examples_run(page, tmp_path, monkeypatch):
    """Every block of a page that is marked as Python runs, in order, in one namespace, beside the examples' data."""
    monkeypatch.chdir(tmp_path)
    os.symlink(os.path.join(ROOT, "examples"), "examples")
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
    assert blocks
    space = {}
    for block in blocks:
        exec(compile(block, page, "exec"), space)
