#!/usr/bin/env python3
"""Runs test programs and Python test files on all cores, and says what failed and what was skipped.

    scripts/run_tests.py build/ci/bin/io_test                          one program
    scripts/run_tests.py build/ci/bin/*_test --python tests/python     what make test does
    scripts/run_tests.py build/ci/bin/io_test --filter 'IoPly*'        some of its tests

A program runs in shards of whole suites, each in one process; each shard and each Python file is a job, and there are as
many jobs at a time as cores. Fails when a test fails, when a program has no tests, when a job crashes or exceeds its time, and when a
test is skipped that tests/skips.txt does not allow for that reason. Closes with "N passed, N failed, N skipped", where a
job that fails as a whole counts as one. Logs are in build/test-logs. Needs Python 3 alone.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARDS_FOR_EACH_CORE = 4  # many: the last ones to end should be short


@dataclasses.dataclass
class Job:
    program: str  # what the report calls it
    name: str
    command: list
    environment: dict


@dataclasses.dataclass
class Report:
    job: Job
    passed: list = dataclasses.field(default_factory=list)
    failed: list = dataclasses.field(default_factory=list)  # (test, what it printed)
    skipped: list = dataclasses.field(default_factory=list)  # (test, reason)
    seconds: float = 0
    slowest: list = dataclasses.field(default_factory=list)  # (seconds, test)


def tests_of(path, name_filter):
    """Names of the tests that match and run, by suite: {"Suite.": ["Suite.Name", ...]}."""
    listed = subprocess.run([path, "--gtest_list_tests", f"--gtest_filter={name_filter}"], check=True, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    tests, suite = collections.defaultdict(list), ""
    for line in listed.splitlines():
        if line.startswith("  "):
            name = line.split("#")[0].strip()
            if not name.startswith("DISABLED_"):  # other tests run these in processes of their own
                tests[suite].append(suite + name)
        else:
            suite = line.split("#")[0].strip()
    return tests


def shards_of(path, name_filter, count, threads):
    """Jobs of about as many tests each. A suite stays together, for its tests share what is costly to make."""
    shards = [[] for _ in range(count)]
    for tests in sorted(tests_of(path, name_filter).values(), key=len, reverse=True):
        min(shards, key=len).extend(tests)
    name = pathlib.Path(path).name
    environment = {"OMP_NUM_THREADS": str(threads)} if threads else {}
    for index, tests in enumerate(shards):
        if tests:
            yield Job(name, f"{name}.{index}", [path, "--gtest_filter=" + ":".join(tests)], environment)


def python_files_of(folder, interpreter, module_path):
    for file in sorted(pathlib.Path(folder).glob("*_test.py")):
        environment = {"PYTHONPATH": module_path, "PYTHONDONTWRITEBYTECODE": "1"}
        yield Job("python", f"python.{file.stem}", [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
                  environment)


def read_report(path, report):
    """Fills a report from JUnit XML, as GoogleTest and pytest write it."""
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") == "notrun" and case.get("result") != "skipped":  # another shard's, disabled or filtered out
            continue
        test = f"{case.get('classname')}.{case.get('name')}"
        problems = case.findall("failure") + case.findall("error")
        if problems:
            report.failed.append((test, "\n".join(problem.text or problem.get("message", "") for problem in problems)))
        elif case.find("skipped") is not None:
            lines = (case.find("skipped").get("message") or "").strip().splitlines()
            report.skipped.append((test, lines[-1] if lines else ""))  # GoogleTest's first line is the place
        else:
            report.passed.append(test)
        report.slowest.append((float(case.get("time", 0)), test))


def last_started(log):
    """The test that was running when a program ended, from the lines that GoogleTest prints."""
    for line in reversed(log.splitlines()):
        if line.startswith("[ RUN      ]"):
            return line.split("]", 1)[1].strip()
    return None


def run(job, logs, limit):
    report, begin = Report(job), time.monotonic()
    log, result = logs / f"{job.name}.log", logs / f"{job.name}.xml"
    result.unlink(missing_ok=True)
    output = [f"--junitxml={result}"] if job.program == "python" else [f"--gtest_output=xml:{result}"]
    environment = dict(os.environ, **job.environment)
    # As many jobs as cores, each with as many threads: those that wait for work by turning would keep others from theirs.
    environment.setdefault("OMP_WAIT_POLICY", "passive")
    with open(log, "w") as out:
        try:
            status = subprocess.run(job.command + output, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT, timeout=limit, check=False).returncode
        except subprocess.TimeoutExpired:
            status = f"more than {limit} s"
        except OSError as error:
            status = error.strerror
    if result.exists() and result.stat().st_size:
        read_report(result, report)
    if status == 5 and report.skipped:  # pytest skipped the file as a whole
        status = 0
    if status == 0 and not report.passed and not report.skipped:
        status = "no tests"
    if status != 0 and not report.failed:
        text = log.read_text(errors="replace")
        where = last_started(text)
        report.failed.append((where or job.name, f"{job.name} ended with {status}" + (f" in {where}" if where else "") +
                              "\n" + "\n".join(text.splitlines()[-30:])))
    report.seconds = time.monotonic() - begin
    return report


def allowed_skips(path):
    """Pairs of patterns, of a test's name and of its reason."""
    lines = [line.strip() for line in path.read_text().splitlines()] if path.exists() else []
    return [tuple(part.strip() for part in line.split("|", 1)) for line in lines if line and not line.startswith("#")]


def tell(program, reports, allowed):
    """Prints what came of a program; how many passed, failed and were skipped."""
    passed = sum(len(report.passed) for report in reports)
    failed = [one for report in reports for one in report.failed]
    skipped = []
    for test, reason in (one for report in reports for one in report.skipped):
        if any(fnmatch.fnmatchcase(test, name) and fnmatch.fnmatchcase(reason, why) for name, why in allowed):
            skipped.append((test, reason))
        else:
            failed.append((test, f"It was skipped, which tests/skips.txt does not allow: {reason}"))
    for test, text in failed:
        print(f"-- {test}\n{text}")
    names_of = collections.defaultdict(collections.Counter)
    for test, reason in skipped:
        names_of[reason][test.partition("[")[0]] += 1  # pytest's parameters say little here
    for reason, names in names_of.items():
        print(f"skip  {program}: {reason}: " +
              ", ".join(name if count == 1 else f"{name} ({count} times)" for name, count in names.items()))
    print(f"{'FAIL ' if failed else 'ok   '} {program}: {passed} passed, {len(failed)} failed, {len(skipped)} skipped "
          f"({sum(report.seconds for report in reports):.0f} s of processes)", flush=True)
    return passed, len(failed), len(skipped)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="test programs, those that take longest first")
    parser.add_argument("--filter", default="*", help="as --gtest_filter")
    parser.add_argument("--python", metavar="FOLDER", help="also the *_test.py files of this folder, under pytest")
    parser.add_argument("--interpreter", default="/usr/bin/python3", help="Python that has pytest (default: %(default)s)")
    parser.add_argument("--module-path", default=str(ROOT / "build/ci/python"), help="where these import stipple from")
    parser.add_argument("--one-thread", action="append", default=[], metavar="PROGRAM",
                        help="a program whose processes have one thread each, as torch's wait by turning")
    parser.add_argument("--threads", type=int, default=0, help="OMP_NUM_THREADS of the other programs (default: leave it)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="at a time (default: the cores)")
    parser.add_argument("--limit", type=int, default=600, metavar="SECONDS", help="of one job (default: %(default)s)")
    parser.add_argument("--logs", default=str(ROOT / "build/test-logs"), help="folder (default: build/test-logs)")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="also list the N slowest tests")
    arguments = parser.parse_args()
    if not arguments.programs + arguments.one_thread and not arguments.python:
        parser.error("no test programs")
    logs = pathlib.Path(arguments.logs)
    logs.mkdir(parents=True, exist_ok=True)
    jobs = []
    passed = failed = skipped = 0
    if arguments.python:
        jobs += python_files_of(arguments.python, arguments.interpreter, arguments.module_path)
    for program in arguments.one_thread + arguments.programs:
        threads = 1 if program in arguments.one_thread else arguments.threads
        try:
            shards = list(shards_of(program, arguments.filter, SHARDS_FOR_EACH_CORE * arguments.jobs, threads))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"FAIL  {program} does not list its tests: {error}")
            failed += 1
            continue
        if not shards:
            print(f"FAIL  {program} has no tests that match '{arguments.filter}'")
            failed += 1
        jobs += shards

    allowed = allowed_skips(ROOT / "tests/skips.txt")
    missing = collections.Counter(job.program for job in jobs)
    reports = collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run, job, logs, arguments.limit) for job in jobs]):
            program = future.result().job.program
            reports[program].append(future.result())
            missing[program] -= 1
            if missing[program] == 0:
                counts = tell(program, reports[program], allowed)
                passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    slowest = sorted((one for of_program in reports.values() for report in of_program for one in report.slowest), reverse=True)
    for seconds, test in slowest[:arguments.slowest]:
        print(f"{seconds:7.1f} s  {test}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
