#!/usr/bin/env python3
"""Docstrings of the Python module from the contracts in the public headers, so that none is written twice.

    python3 scripts/python_docs.py OUTPUT.h stipple/core stipple/ops ...

Writes a C++ header with doc::FOLDER::NAME, the `///` comment above the function, class or struct NAME of that folder's
public headers. A function that follows another without a comment of its own shares the other's; overloads are joined;
options that a function takes as a struct are listed with their defaults. Only what Python itself brings is needed.
"""
import os
import re
import sys

HIDDEN = re.compile(r"^namespace (?:cuda|cpu|detail)\s*\{")


def visible_lines(text):
    """The lines of a header without the namespaces of its implementations."""
    lines, depth = [], 0
    for line in text.splitlines():
        if depth == 0 and HIDDEN.match(line):
            depth = line.count("{") - line.count("}")
            continue
        if depth > 0:
            depth += line.count("{") - line.count("}")
            continue
        lines.append(line)
    return lines


def declarations(text):
    """(comment, kind, name, declaration, body) of everything at the outer level of a header."""
    lines, i, found = visible_lines(text), 0, []
    comment, previous = [], ""
    while i < len(lines):
        line = lines[i]
        if line.startswith("///"):
            comment.append(line[4:] if line.startswith("/// ") else line[3:])
            i += 1
            continue
        type_ = re.match(r"(?:struct|class|enum class) (\w+)[^;]*$", line)
        if type_ and "{" in line:
            body, depth = [line], line.count("{") - line.count("}")
            while depth > 0 and i + 1 < len(lines):
                i += 1
                body.append(lines[i])
                depth += lines[i].count("{") - lines[i].count("}")
            kind = "enum" if line.startswith("enum") else "struct"
            found.append(("\n".join(comment), kind, type_.group(1), line, "\n".join(body)))
            comment, previous = [], ""
        elif re.match(r"[A-Za-z_].*\(", line) and not re.match(r"(namespace|template|using|static_assert|#|constexpr)\b", line):
            declaration = line
            while not re.search(r"[;{]", declaration) and i + 1 < len(lines):
                i += 1
                declaration += " " + lines[i].strip()
            depth = declaration.count("{") - declaration.count("}")
            # A default `= {}` balances itself; a body does not end on its line.
            while depth > 0 and i + 1 < len(lines):
                i += 1
                depth += lines[i].count("{") - lines[i].count("}")
            while declaration.count("(") > declaration.count(")") and i + 1 < len(lines):
                i += 1
                declaration += " " + lines[i].strip()
            name = re.match(r"[^(]*?\b(\w+)\(", declaration)
            text_ = "\n".join(comment) or previous
            if name and "operator" not in declaration.split("(")[0]:
                found.append((text_, "function", name.group(1), declaration, ""))
            comment, previous = [], text_
        elif line.strip() and not line.startswith("//"):
            comment = []
        i += 1
    return found


def error_classes():
    """{code: exception} of the table in core."""
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stipple", "core", "process", "error.cpp")
    with open(table, encoding="utf-8") as file:
        return dict(re.findall(r'\{ErrorCode::(\w+), "\w+", \d+, "([\w.]+)"', file.read()))


def as_python(text, classes):
    """A contract in words of Python: what is thrown there is raised here, by the name that it has here."""
    text = re.sub(r"\bError\{(\w+)\}", lambda match: classes.get(match.group(1), match.group(0)), text)
    return re.sub(r"\bThrows\b", "Raises", re.sub(r"\bthrows\b", "raises", text))


def default_of(text):
    """A C++ default as a user of Python writes it."""
    if text in ("true", "false"):
        return text.capitalize()
    text = re.sub(r"\b\w+::(\w+)$", r'"\1"', text)
    return re.sub(r"^([-+0-9.e]+)f$", r"\1", text)


def fields(body):
    """(name, default, comment) of the members of a struct of options."""
    found, above = [], []
    for line in body.splitlines()[1:]:
        if line.strip().startswith("///"):
            above.append(line.strip()[3:].strip())
            continue
        match = re.match(r"\s+[\w:<>, ]+?\s(\w+)(?:\s*=\s*([^;]*?))?;(?:\s*//\s*(.*))?$", line)
        if match and not match.group(1).endswith("_"):
            comment = match.group(3) or " ".join(above)
            found.append((match.group(1), default_of(match.group(2) or ""), comment))
        above = []
    return found


def folder_docs(folder):
    """{name: docstring} and the declarations of all public headers of a folder."""
    docs, everything, classes = {}, [], error_classes()
    for header in sorted(os.listdir(folder)):
        if header.endswith(".h"):
            with open(os.path.join(folder, header), encoding="utf-8") as file:
                everything += [(header,) + entry for entry in declarations(file.read())]
    structs = {name: body for _, _, kind, name, _, body in everything if kind == "struct"}
    for header, comment, kind, name, declaration, body in everything:
        if kind == "function":
            for option in re.findall(r"const (\w+)& \w+", declaration):
                listed = [(n, d, c) for n, d, c in fields(structs.get(option, "")) if d or c]
                if listed and option not in ("Clouds", "Neighbours", "Batch", "MatrixView", "MutableMatrixView"):
                    comment += "\n\n" + option + ":\n" + "\n".join(
                        "    %s%s%s" % (n, " = " + d if d else "", "  (" + c + ")" if c else "") for n, d, c in listed)
        if name not in docs:
            docs[name] = comment
        elif comment and comment not in docs[name]:
            docs[name] += "\n\n" + comment
    # A class without a comment of its own has the one at the head of its file.
    for header, comment, kind, name, _, _ in everything:
        if not docs[name]:
            with open(os.path.join(folder, header), encoding="utf-8") as file:
                head = re.search(r"#pragma once\n((?://.*\n)+)", file.read())
            if head:
                docs[name] = "\n".join(line[3:] for line in head.group(1).splitlines())
    return {name: as_python(text, classes) for name, text in docs.items()}, everything


def main(arguments):
    output, folders = arguments[0], arguments[1:]
    text = "#pragma once\n// Made by scripts/python_docs.py of the comments in public headers.\n\n"
    for folder in folders:
        docs, _ = folder_docs(folder)
        text += "namespace stipple::python::doc::%s {\n" % os.path.basename(folder.rstrip("/"))
        for name in sorted(docs):
            # Compilers limit the length of one literal; neighbours are joined.
            words = docs[name].strip() or "(no documentation)"
            parts = [words[i:i + 8000] for i in range(0, len(words), 8000)]
            text += "inline constexpr const char* %s = %s;\n" % (name, " ".join('R"doc(%s)doc"' % part for part in parts))
        text += "}\n"
    if os.path.exists(output):
        with open(output, encoding="utf-8") as file:
            if file.read() == text:
                return 0
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
