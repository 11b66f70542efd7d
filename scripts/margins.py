#!/usr/bin/env python3
"""Prints how much room the expectations of tests have that train or sample: each test runs with several seeds.

    scripts/margins.py build/ci/bin/learn_test build/ci/bin/radiance_test            ten trials, a table (Markdown)
    scripts/margins.py build/ci/bin/learn_test --filter 'LearnGumbel.*' --trials 5   some tests, five trials

The tests are those that use EXPECT_ABOVE or EXPECT_BELOW (tests/support/margin.h). Room is how far a value is on the right
side of its bound, as a share of the bound. A bound that moves with the trial (a share of another value) moves with it.
Exits with 1 when a test fails in any trial. Needs Python 3 alone.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from run_tests import tests_of


def run_tests_once(program, tests, trial, threads):
    """Records of one process, and the names of tests that failed."""
    with tempfile.TemporaryDirectory() as folder:
        margins, report = pathlib.Path(folder, "margins"), pathlib.Path(folder, "report.json")
        environment = dict(os.environ, STIPPLE_TEST_TRIAL=str(trial), STIPPLE_TEST_MARGINS=str(margins))
        if threads:
            environment["OMP_NUM_THREADS"] = str(threads)
        command = [program, "--gtest_filter=" + ":".join(tests), "--gtest_brief=1", f"--gtest_output=json:{report}"]
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", stdin=subprocess.DEVNULL, check=False)
        if not report.exists():
            sys.exit(f"margins: {program} ended with {ended.returncode} in trial {trial}:\n{ended.stdout[-2000:]}")
        failed = [f"{suite['name']}.{test['name']}" for suite in json.loads(report.read_text())["testsuites"]
                  for test in suite["testsuite"] if test.get("failures")]
        lines = margins.read_text().splitlines() if margins.exists() else []
        return [json.loads(line) for line in lines], failed


def room_of(record):
    gap = record["value"] - record["bound"] if record["relation"] == ">" else record["bound"] - record["value"]
    return gap / abs(record["bound"]) if record["bound"] else gap


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", help="test programs")
    parser.add_argument("--trials", type=int, default=10, metavar="N", help="seeds to try (default: 10)")
    parser.add_argument("--filter", default="*", help="as --gtest_filter")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time (default: the cores)")
    parser.add_argument("--threads", type=int, default=1, help="OMP_NUM_THREADS, 0 leaves it (default: 1)")
    arguments = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        # Trial 0 runs every test and tells which ones record anything; the others have no seed.
        firsts = [(program, pool.submit(run_tests_once, program, tests, 0, arguments.threads))
                  for program in arguments.programs for tests in tests_of(program, arguments.filter).values()]
        results = [future.result() for _, future in firsts]
        seeded = sorted({(program, record["test"]) for program, future in firsts for record in future.result()[0]})
        results += pool.map(lambda job: run_tests_once(job[0][0], [job[0][1]], job[1], arguments.threads),
                            [(test, trial) for test in seeded for trial in range(1, arguments.trials)])
    records, failures = collections.defaultdict(list), collections.Counter()
    for found, failed in results:
        failures.update(failed)
        for record in found:
            key = record["test"], f"{record['value_text']} {record['relation']} {record['bound_text']}"
            records[key].append(record)
    print("| test | expectation | worst value, its bound | least room | mean room | deviation |")
    print("|---|---|--:|--:|--:|--:|")
    for (test, text), found in sorted(records.items()):
        rooms = [room_of(record) for record in found]
        worst = min(found, key=room_of)
        text = text.replace("|", "\\|")
        print(f"| {test} | `{text}` | {worst['value']:.4g}, {worst['bound']:.4g} | {100 * min(rooms):.0f} % "
              f"| {100 * statistics.fmean(rooms):.0f} % | {100 * statistics.pstdev(rooms):.0f} % |")
    for test, count in failures.items():
        print(f"margins: {test} failed in {count} of {arguments.trials} trials", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
