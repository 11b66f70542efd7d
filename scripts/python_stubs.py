#!/usr/bin/env python3
"""Type stubs (.pyi) of the built Python module, from the module itself. Only what Python brings is needed.

    PYTHONPATH=build/ci/python python3 scripts/python_stubs.py OUTPUT_FOLDER

Writes one file for each module of the package: signatures as pybind11 prints them, named tuples with their parts,
classes with their properties and methods, functions written in Python by their signature. Docstrings are left to the
module: an editor finds them there.
"""
import inspect
import os
import re
import sys
import types

HEAD = '''# Made by scripts/python_stubs.py from the module itself.
from typing import Any, NamedTuple, Sequence, Union

'''
TYPES = '''#: A numpy array, a torch tensor, a stipple.Array, or another object with __dlpack__.
ArrayLike = Any
#: An array of the kind of the function's first array argument.
ArrayResult = Any
#: Whole numbers: where the clouds of a ragged batch begin.
OffsetsLike = Union[Sequence[int], Any]
#: A str, bytes, or a path of pathlib.
PathLike = Any
#: A few numbers: a tuple, a list, an array.
NumbersLike = Any
#: A stipple.io.Mesh, or a tuple of arrays: vertices [n, 3] float32 and triangles [m, 3] int32.
MeshLike = Any
#: A number for all clouds, or one for each.
CountsLike = Union[int, Sequence[int]]
'''


def clean(signature):
    """pybind11's text as valid Python."""
    text = re.sub(r"\b(?:stipple|_stipple)\.(?:_stipple\.)?(?:[a-z]+\.)?(\w+)", r"\1", signature)
    text = re.sub(r"<[^<>]*>", "...", text)
    text = re.sub(r"= (?:inf|nan)\b", "= ...", text)
    text = re.sub(r": (\w+) = None", r": \1 | None = None", text)
    text = text.replace(": handle", ": Any").replace(": object", ": Any").replace("-> object", "-> Any")
    text = re.sub(r"(\w+): (ArrayObject|capsule)", r"\1: Any", text)
    return text.replace("-> capsule", "-> Any").replace("arg0", "value")


def of_function(name, function, indent=""):
    document = function.__doc__ or ""
    first = document.splitlines()[0] if document else ""
    if not isinstance(function, types.FunctionType) and first.startswith(name + "("):
        return "%sdef %s: ...\n" % (indent, clean(first))
    try:
        return "%sdef %s%s: ...\n" % (indent, name, inspect.signature(function))
    except (TypeError, ValueError):
        return "%sdef %s(*arguments: Any, **options: Any) -> Any: ...\n" % (indent, name)


def of_class(name, class_):
    if issubclass(class_, tuple) and hasattr(class_, "n_fields"):
        parts = [key for key, value in vars(class_).items() if type(value).__name__ == "member_descriptor"]
        return "class %s(NamedTuple):\n%s\n" % (name, "".join("    %s: Any\n" % part for part in parts))
    bases = ", ".join(base.__name__ for base in class_.__bases__ if base.__name__ not in ("object", "pybind11_object"))
    text = "class %s%s:\n" % (name, "(%s)" % bases if bases else "")
    body = ""
    if issubclass(class_, BaseException) and name == "Error":
        body += "    code: str\n    place: dict[str, Any] | None\n    hint: str | None\n"
    for key, value in sorted(vars(class_).items()):
        if isinstance(value, property):
            found = re.search(r"-> (.*)", value.fget.__doc__ or "")
            type_ = clean("-> " + found.group(1)) if found else "-> Any"
            body += "    @property\n    def %s(self) %s: ...\n" % (key, type_)
        elif callable(value) and (not key.startswith("__") or key in ("__init__", "__len__", "__dlpack__", "__dlpack_device__")):
            if issubclass(class_, BaseException) or (key == "__init__" and "args" in of_function(key, value)):
                continue
            body += of_function(key, value, "    ")
    return text + (body or "    ...\n") + "\n"


def of_module(module, names, head):
    text = head
    for name in names:
        value = getattr(module, name)
        if isinstance(value, type):
            text += of_class(name, value)
    for name in names:
        value = getattr(module, name)
        if isinstance(value, (type, types.ModuleType)):
            continue
        text += of_function(name, value) if callable(value) else "%s: %s\n" % (name, "Any" if type(value).__name__ == "SimpleNamespace" else type(value).__name__)
    return text


def stubs():
    """{file name: text} for every module of the package."""
    import stipple

    files = {}
    # Bases before what derives from them.
    names = sorted((n for n in stipple.__all__), key=lambda n: (n != "Error", n))
    root = [n for n in names if not isinstance(getattr(stipple, n), types.ModuleType)]
    modules = [n for n in names if isinstance(getattr(stipple, n), types.ModuleType)]
    files["__init__.pyi"] = of_module(stipple, root, HEAD + "".join("from . import %s as %s\n" % (m, m) for m in modules) + "\n" + TYPES + "\n")
    for name in modules:
        module = getattr(stipple, name)
        head = HEAD + "from . import ArrayLike, ArrayResult, CountsLike, MeshLike, NumbersLike, OffsetsLike, PathLike\n"
        head += ("from .picture import Image\n" if name == "io" else "from .io import Mesh, PointCloud\n") + "\n"
        files[name + ".pyi"] = of_module(module, sorted(module.__all__), head)
    return files


def main(arguments):
    for name, text in stubs().items():
        with open(os.path.join(arguments[0], name), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
