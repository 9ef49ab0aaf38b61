#!/usr/bin/env python3
"""Puts the faults of catalogue.py into a copy of the tree, builds it once, and lists those that no test finds.

    python3 test/mutants/run.py SCRATCH [--only N ...] [--area launcher/job ...] [--build-only] [--torch PYTHON]

SCRATCH gets the copy and its build, and is used again; remove it afterwards. Each mutant runs the tests of its area, the cheap ones
first, until one fails, or takes four times as long as without a mutant. Exit code 1: mutants survived, or a test failed without one.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import catalogue  # noqa: E402

# (what to run, in the order of what it costs): programs of build/test, or arguments of pytest.
TESTS = {
    catalogue.JOB: ["unit_launcher", "unit_verdict", "contract_generations", "sim_elastic", "sim_launch"],
    catalogue.SHM: ["unit_segment", "unit_runtime", "contract_engine", "contract_backend", "contract_peers", "sim_engine"],
    catalogue.HOSTS: ["unit_hosts", "contract_hosts", "sim_engine", "sim_coordination"],
    catalogue.NET: ["unit_net", "unit_records", "unit_mesh", "contract_inter_host", "contract_tree", "contract_generations"],
    catalogue.TORCH: [
        ("test/python/test_optimizer.py", "test/python/test_world_of_one.py"),
        ("test/python/test_gradients_after_backward.py", "test/python/test_wrapped_optimizer.py", "test/python/test_identity.py",
         "test/python/test_collectives.py", "test/python/test_jobs.py", "-k",
         "(2-1 or [2 or buckets or wrapped or object or [3) and not killed and not 200 and not hundred and not elements and not garbage"
         " and not torchrun and not forked and not children and not hosts"),
        ("test/python/test_elastic.py",)],
}
LIMIT_TIMES, LIMIT_MORE_S = 4, 30


def area_of(path):
    return next(area for area in TESTS if path.startswith(area + "/"))


def copy_tree(target):
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                           check=True).stdout.splitlines()
    for name in names:
        source, copy = os.path.join(ROOT, name), os.path.join(target, name)
        if not os.path.isfile(source):
            continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy2(source, copy)
        shutil.copymode(source, copy)


def mutated(text, number, place, instead, python):
    before, original, after = (part for half in place.split("«") for part in half.split("»"))
    whole = before + original + after
    if text.count(whole) != 1:
        raise SystemExit(f"mutant {number}: {whole!r} occurs {text.count(whole)} times")
    choice = (f"(({instead}) if __import__('os').environ.get('CHOSEN_MUTANT') == '{number}' else ({original}))" if python else
              f"(HvdMutant({number}) ? ({instead}) : ({original}))")
    return text.replace(whole, before + choice + after)


def mutate(tree, areas):
    for path in dict.fromkeys(mutant[0] for mutant in catalogue.MUTANTS if area_of(mutant[0]) in areas):
        with open(os.path.join(ROOT, path)) as file:
            text = file.read()
        for number, (of, place, instead) in enumerate(catalogue.MUTANTS):
            if of == path:
                text = mutated(text, number, place, instead, path.endswith(".py"))
        if not path.endswith(".py"):
            text = '#include "test/mutants/mutant.h"\n' + text
        target = os.path.join(tree, path)
        with open(target) as file:
            same = file.read() == text
        if not same:
            with open(target, "w") as file:
                file.write(text)


def programs(areas):
    return sorted({test for area in areas for test in TESTS[area] if isinstance(test, str)})


def build(tree, areas):
    environment = {**os.environ, "CCACHE_BASEDIR": tree, "CCACHE_NOHASHDIR": "1"}
    subprocess.run(["cmake", "--preset", "release"], cwd=tree, check=True, stdout=subprocess.DEVNULL, env=environment)
    targets = programs(areas) + ["hvd", "hvdrun", "hvd_gloo"]
    subprocess.run(["cmake", "--build", "--preset", "release", "-j2", "--target", *targets], cwd=tree, check=True, env=environment)


def run(tree, test, mutant, limit_s, python):
    """(whether it passed, seconds)"""
    command = [f"build/test/{test}", "--gtest_brief=1"] if isinstance(test, str) else [
        python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *test]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if mutant is not None:
        environment["CHOSEN_MUTANT"] = str(mutant)
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            passed = process.wait(limit_s) == 0
        except subprocess.TimeoutExpired:
            passed = False
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not passed and mutant is None:  # then it is run for no mutant, and whoever reads this has to know why
            output.seek(0)
            print(output.read()[-4000:].decode(errors="replace"), flush=True)
    return passed, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch")
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--area", nargs="*", default=list(TESTS))
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--torch", default=sys.executable, help="interpreter of the tests of Python")
    options = parser.parse_args()
    tree = os.path.join(os.path.abspath(options.scratch), "tree")
    copy_tree(tree)
    mutate(tree, options.area)
    build(tree, options.area)
    if options.build_only:
        return 0
    chosen = [number for number, mutant in enumerate(catalogue.MUTANTS)
              if area_of(mutant[0]) in options.area and (not options.only or number in options.only)]
    limits, killed, survived = {}, 0, []
    for number in chosen:
        path, place, instead = catalogue.MUTANTS[number]
        killer = None
        for test in TESTS[area_of(path)]:
            if test not in limits:
                passed, seconds = run(tree, test, None, 1800, options.torch)
                print(f"without a mutant: {test} {'passed' if passed else 'FAILED'} in {seconds:.0f} s", flush=True)
                limits[test] = seconds * LIMIT_TIMES + LIMIT_MORE_S if passed else None
            if limits[test] is not None and not run(tree, test, number, limits[test], options.torch)[0]:
                killer = test
                break
        killed += killer is not None
        if killer is None:
            survived.append(number)
        print(f"mutant {number}: {'killed by ' + str(killer) if killer else 'SURVIVED'}: {path}: {place.strip()} -> {instead}",
              flush=True)
    print(f"{killed} of {len(chosen)} mutants killed")
    for number in survived:
        path, place, instead = catalogue.MUTANTS[number]
        print(f"survived: {number} {path}: {place.strip()} -> {instead}")
    return 1 if survived or None in limits.values() else 0


if __name__ == "__main__":
    sys.exit(main())
