#!/usr/bin/env python3
"""Prints where the time of a build went, folder by folder, from the log that ninja keeps.

    scripts/build_times.py [build/release]           a table (Markdown), as in docs/building.md
    scripts/build_times.py build/ci --files 20       and the 20 slowest files

Object time is the sum of what each compilation took, so two cores count twice and a loaded machine counts its waiting; measure
on an idle one, from an empty folder, with an empty ccache (CCACHE_DISABLE=1). Wall time is from the first start to the last end.
Needs Python 3 alone.
"""
import argparse
import collections
import pathlib
import re
import sys


def last_times(log):
    """Output -> (begin, end) in milliseconds, of its latest build. Ninja appends, so later lines win."""
    times = {}
    for line in log.read_text().splitlines():
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) >= 5:
            times[fields[3]] = int(fields[0]), int(fields[1])
    return times


def folder_of(output):
    """The row of the table that an output belongs to."""
    target = re.match(r"(?P<folder>.*?)CMakeFiles/(?P<target>[^/]+)\.dir/(?P<rest>.+)", output)
    if not target:
        return "link, archive" if re.search(r"\.a$|(^|/)bin/", output) else None
    if "cmake_pch" in target["rest"]:
        return "precompiled headers"
    if target["target"].startswith("precompiled_"):
        return "precompiled headers"
    folder = target["folder"].rstrip("/")
    if folder in ("", "."):
        return target["target"]
    if folder in ("tests", "bench", "fuzz"):  # one target for each folder below
        return f"{folder}/{re.sub(r'_(test|bench)(_cuda)?$', '', target['target'])}"
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="build/release", help="the build folder")
    parser.add_argument("--files", type=int, default=0, metavar="N", help="also list the N slowest files")
    arguments = parser.parse_args()
    log = pathlib.Path(arguments.folder) / ".ninja_log"
    if not log.exists():
        sys.exit(f"build_times: {log} does not exist; build first, or name another folder")
    seconds, files, slowest = collections.Counter(), collections.Counter(), {}
    builds = []
    for output, (begin, end) in last_times(log).items():
        folder = folder_of(output)
        if folder is None or output.startswith("/"):  # ninja logs some outputs by both names
            continue
        time = (end - begin) / 1000
        builds.append((begin, end, output, time))
        seconds[folder] += time
        files[folder] += 1
        if time > slowest.get(folder, ("", -1))[1]:
            slowest[folder] = output, time
    if not builds:
        sys.exit(f"build_times: {log} has no objects")

    def name(output):
        return re.sub(r".*\.dir/", "", output).removesuffix(".o")

    print("| folder | files | object time (s) | slowest file (s) |")
    print("|---|--:|--:|---|")
    for folder, total in seconds.most_common():
        output, time = slowest[folder]
        print(f"| {folder} | {files[folder]} | {total:.1f} | {name(output)} ({time:.1f}) |")
    wall = (max(b[1] for b in builds) - min(b[0] for b in builds)) / 1000
    print(f"| **all** | {sum(files.values())} | {sum(seconds.values()):.1f} | wall: {wall:.1f} s |")
    if arguments.files:
        print()
        for _, _, output, time in sorted(builds, key=lambda b: -b[3])[:arguments.files]:
            print(f"{time:7.1f} s  {output}")


if __name__ == "__main__":
    main()
