"""The commands by which the scripts install and build, seen in a copy of them with programs of ours on PATH."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess

import pytest
from conftest import DEADLINE, REPO

# Notes its own name and arguments; dpkg-query says nothing, as of a package that is not there.
NOTE = '#!/bin/sh\necho "$(basename "$0")" "$@" >>"$NOTES"\ncase "$*" in *--build*) echo "[1/2] compiling" ;; esac\n'
SUDO = '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n'


@pytest.fixture
def tree(tmp_path):
    shutil.copytree(REPO / "scripts", tmp_path / "tree" / "scripts")
    programs = {name: tmp_path / "path" / name for name in ("cmake", "apt-get", "dpkg-query", "sudo")}
    programs["hvdrun"] = tmp_path / "tree" / "build" / "bin" / "hvdrun"
    for name, path in programs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SUDO if name == "sudo" else NOTE)
        path.chmod(0o755)
    return tmp_path


def environment(tree):
    env = {**os.environ, "PATH": f"{tree}/path:{os.environ['PATH']}", "NOTES": f"{tree}/notes"}
    env["CUDA_HOME"] = f"{tree}/no-toolkit"  # so that programs of a toolkit are those of `path`
    env.pop("HVD_VERBOSE", None)
    return env


def run(tree, script, *words):
    done = subprocess.run([tree / "tree" / "scripts" / script, *words], env=environment(tree), capture_output=True, text=True,
                          timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def noted(tree, program):
    return [line for line in (tree / "notes").read_text().splitlines() if line.split()[0] == program]


def installed(tree):
    line, = [line for line in noted(tree, "apt-get") if " install " in line]
    return set(line.split(" install ")[1].split())


def test_the_quickstart_builds_no_kernels_unless_it_is_asked(tree, monkeypatch):
    run(tree, "quickstart.sh")
    assert not any("HVD_WITH_CUDA" in line for line in noted(tree, "cmake"))
    monkeypatch.setenv("HVD_WITH_CUDA", "ON")
    run(tree, "quickstart.sh")
    assert any(line.endswith(" -DHVD_WITH_CUDA=ON") for line in noted(tree, "cmake"))


UNSANITIZED = {"sanitizer": {"left_out": "compute-sanitizer is not installed"}}
GPU_CHECK = """#!/bin/sh
echo "$@" >>"$NOTES"
{end}
"""


@pytest.mark.parametrize("end, code, says, summary", [
    ('echo "{\\"device\\": \\"a GPU\\"}"', 0, "left out: compute-sanitizer.*all passed", {"device": "a GPU", **UNSANITIZED}),
    ('echo "there is \\"no\\" driver" >&2; exit 3', 0, 'left out: .* because: there is "no" driver\n',
     {"device": None, "left_out": 'there is "no" driver'}),
    ('echo "{\\"device\\": \\"bad\\"}"; echo "one: bad" >&2; exit 1', 1, "one: bad\n.*FAILED", {"device": "bad"}),
    ("kill -SEGV $$", 1, "FAILED .139.", None),
], ids=["passes", "no-gpu", "fails", "crashes"])
def test_a_build_is_taken_to_a_machine_with_a_gpu(tree, end, code, says, summary):
    check = tree / "carried" / "test" / "hvd_gpu_check"
    check.parent.mkdir(parents=True)
    check.write_text(GPU_CHECK.replace("{end}", end))
    check.chmod(0o755)
    done = subprocess.run([tree / "tree/scripts/test_gpu.sh", "--build", "carried", "--json", "out/gpu.json"], cwd=tree,
                          env=environment(tree), capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == code, done.stdout + done.stderr
    assert re.search(says, done.stdout, re.S), done.stdout
    file = tree / "out" / "gpu.json"
    assert (json.loads(file.read_text()) if file.exists() else None) == summary
    assert noted(tree, str(tree / "carried/lib")) == [str(tree / "carried/lib")]


CARRIED = ("bin/hvdrun", "bin/hvd_perf", "lib/libhvd.so", "lib/libhvd_cuda.so", "test/hvd_gpu_check")


@pytest.fixture
def built(tree):
    """A build whose programs are notes, in a tree with what a packed suite needs."""
    for name in CARRIED:
        path = tree / "built" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GPU_CHECK.replace("{end}", 'echo "{\\"device\\": \\"a GPU\\"}"') if "check" in name else NOTE)
        path.chmod(0o755)
    for folder in ("runtime/python", "test/gpu", "test/python/workers"):
        shutil.copytree(REPO / folder, tree / "tree" / folder, ignore=shutil.ignore_patterns("__pycache__"))
    strip = tree / "path/strip"
    strip.write_text(NOTE)
    strip.chmod(0o755)
    return tree


def test_a_packed_build_runs_where_it_is_unpacked(built):
    run(built, "test_gpu.sh", "--build", str(built / "built"), "--pack", str(built / "gpu.tar.gz"))
    assert len(noted(built, "strip")) == len(CARRIED)
    subprocess.run(["tar", "xzf", built / "gpu.tar.gz", "-C", built], check=True)
    carried = built / "hvd-gpu"
    assert (carried / "test/python/workers/gpu.py").exists() and (carried / "runtime/python/horovod/torch").is_dir()
    done = subprocess.run([carried / "scripts/test_gpu.sh", "--build", carried / "build", "--part", "kernels"],
                          env=environment(built), capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0 and "all passed" in done.stdout, done.stdout + done.stderr
    assert json.loads((carried / "build/gpu.json").read_text()) == {"device": "a GPU", **UNSANITIZED}


@pytest.mark.parametrize("fails", [None, "racecheck"])
def test_the_kernels_are_checked_by_compute_sanitizer_where_it_is(built, fails):
    program = built / "path/compute-sanitizer"
    program.write_text(f'#!/bin/sh\necho "compute-sanitizer $@" >>"$NOTES"\n[ "$2" != {fails} ] || {{ echo a race; exit 9; }}\n')
    program.chmod(0o755)
    done = subprocess.run([built / "tree/scripts/test_gpu.sh", "--build", built / "built", "--part", "kernels"],
                          env=environment(built), capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == (1 if fails else 0), done.stdout + done.stderr
    assert ("a race" in done.stdout and "FAILED" in done.stdout) == bool(fails), done.stdout
    said = json.loads((built / "built/gpu.json").read_text())
    assert said == {"device": "a GPU", "sanitizer": {tool: "FAILED" if tool == fails else "ok"
                                                     for tool in ("memcheck", "racecheck", "synccheck")}}
    assert len(noted(built, "compute-sanitizer")) == 3 and all(
        line.endswith(f"{built}/built/test/hvd_gpu_check {built}/built/lib --only-checks") for line in noted(built, "compute-sanitizer"))


@pytest.mark.parametrize("spoil, says", [
    (lambda path: path.unlink(), "there is no"),
    (lambda path: os.truncate(path, 61 << 20), "MiB, and 60 MiB is the limit"),
], ids=["missing", "large"])
def test_a_build_that_cannot_be_carried_is_not_packed(built, spoil, says):
    spoil(built / "built/lib/libhvd_cuda.so")
    done = subprocess.run([built / "tree/scripts/test_gpu.sh", "--build", built / "built", "--pack", built / "gpu.tar.gz"],
                          env=environment(built), capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 1 and says in done.stdout and not (built / "gpu.tar.gz").exists(), done.stdout + done.stderr


def test_a_wrong_option_of_the_gpu_test_ends_with_2(tree):
    for words in (["--what"], ["--part", "all of it"], ["--json"]):
        done = subprocess.run([tree / "tree/scripts/test_gpu.sh", *words], env=environment(tree), capture_output=True, timeout=DEADLINE)
        assert done.returncode == 2, words


def test_a_build_without_cuda_is_left_out_in_one_line(tree):
    (tree / "empty").mkdir()
    out = run(tree, "test_gpu.sh", "--build", str(tree / "empty"))
    assert len(out.splitlines()) == 1 and "because: there is no" in out
    assert json.loads((tree / "empty" / "gpu.json").read_text())["device"] is None


def test_the_quickstart_installs_nothing_that_only_tests_need(tree):
    run(tree, "quickstart.sh")
    packages = installed(tree)
    assert {"cmake", "libasio-dev", "libgloo-dev", "python3-torch"} <= packages
    assert not packages & {"spin", "nftables", "openssh-server", "python3-mpi4py", "libgtest-dev", "libgmock-dev",
                           "python3-pytest", "ccache"}
    assert noted(tree, "hvdrun") == ["hvdrun -np 2 /usr/bin/python3 examples/pytorch_digits.py"]


def test_the_tests_need_all_that_the_quickstart_needs(tree):
    run(tree, "install_deps.sh")
    everything = installed(tree)
    (tree / "notes").unlink()
    run(tree, "install_deps.sh", "--product")
    assert installed(tree) < everything


@pytest.mark.parametrize("version, strict", [("12", "ON"), ("12.2.0", "ON"), ("14", "OFF")])
def test_only_the_compiler_of_ci_is_strict_in_all_presets_alike(tree, version, strict):
    compiler = tree / "path/g++"
    compiler.write_text(f"#!/bin/sh\necho {version}\n")
    compiler.chmod(0o755)
    for preset in ("product", "release", "ci"):
        run(tree, "build.sh", preset)
    configured = [line for line in noted(tree, "cmake") if "--preset" in line and "--build" not in line]
    assert len(configured) == 3 and all(f"-DHVD_WERROR={strict}" in line for line in configured)


def test_the_quickstart_builds_no_tests(tree):
    run(tree, "quickstart.sh")
    configure, build = noted(tree, "cmake")
    assert "--preset product" in configure
    assert build == "cmake --build --preset product"
    presets = {p["name"]: p for p in json.loads((REPO / "CMakePresets.json").read_text())["configurePresets"]}
    assert presets["product"]["inherits"] == "release", "a folder: `build`, as the README says"
    assert presets["product"]["cacheVariables"]["BUILD_TESTING"] == "OFF"
    assert presets["release"]["cacheVariables"]["BUILD_TESTING"] == "ON", "in that same folder"


def test_a_build_shows_how_far_it_is_on_a_terminal_only(tree):
    assert "[1/2] compiling" not in run(tree, "build.sh", "product")
    ours, theirs = pty.openpty()
    with subprocess.Popen([tree / "tree" / "scripts" / "build.sh", "product"], env=environment(tree), stdout=theirs,
                          stderr=theirs) as build:
        os.close(theirs)
        shown = b""
        while True:
            try:
                some = os.read(ours, 4096)
            except OSError:  # the end of a terminal
                break
            if not some:
                break
            shown += some
        assert build.wait(timeout=DEADLINE) == 0
    os.close(ours)
    assert b"[1/2] compiling" in shown


# ---- clang-tidy

@pytest.fixture
def tidy(tmp_path):
    """run(text): tidy.sh in a tree whose branch main has nothing, and which now has cmd/a.cc with this text."""
    if not shutil.which("clang-tidy"):
        pytest.skip("clang-tidy is not installed")
    shutil.copytree(REPO / "scripts", tmp_path / "scripts")
    shutil.copy(REPO / ".clang-tidy", tmp_path)
    git = ["git", "-C", tmp_path, "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "base"], check=True)

    def run_it(text=None, *words):
        for folder in ("cmd", "configs", "discovery", "launcher", "runtime", "test", "timeline", "build"):
            (tmp_path / folder).mkdir(exist_ok=True)
        source = tmp_path / "cmd" / "a.cc"
        if text is not None:
            source.write_text(text)
            command = {"directory": str(tmp_path), "file": str(source),
                       "command": f"c++ -std=gnu++20 -Wshadow=local -Werror -include cmake_pch.hxx -o a.o -c {source}"}
            (tmp_path / "build" / "compile_commands.json").write_text(json.dumps([command], indent=1))
        done = subprocess.run([tmp_path / "scripts" / "tidy.sh", *words], capture_output=True, text=True, timeout=DEADLINE)
        return done.returncode, done.stdout + done.stderr

    return run_it


def test_tidy_refuses_a_finding_in_a_changed_file(tidy):
    code, out = tidy("int Double(int BadName) { return 2 * BadName; }\n")
    assert code not in (0, 3), out
    assert "invalid case style for parameter 'BadName'" in out


def test_tidy_accepts_a_file_without_findings(tidy):
    code, out = tidy("int Double(int number) { return 2 * number; }\n")
    assert (code, out.splitlines()[-1]) == (0, "[tidy.sh] clang-tidy on 1 files ..."), out
    assert tidy(None, "--all")[0] == 0


def test_tidy_says_why_it_looked_at_nothing(tidy):
    code, out = tidy()
    assert (code, out) == (3, "[tidy.sh] build/compile_commands.json is missing: run scripts/build.sh release first\n")


def test_tidy_looks_at_each_of_the_files_that_are_compiled_as_one(tidy, tmp_path):
    unity = tmp_path / "build" / "Unity" / "unity_0_cxx.cxx"
    unity.parent.mkdir(parents=True)
    unity.write_text("".join(f'/* NOLINTNEXTLINE */\n#include "{tmp_path}/cmd/{name}.cc"\n' for name in "ab"))
    (tmp_path / "cmd").mkdir()
    (tmp_path / "cmd" / "a.cc").write_text("int Double(int number) { return 2 * number; }\n")
    (tmp_path / "cmd" / "b.cc").write_text("int Half(int BadName) { return BadName / 2; }\n")
    (tmp_path / "build" / "compile_commands.json").write_text(json.dumps(
        [{"directory": str(tmp_path), "file": str(unity), "command": f"c++ -std=gnu++20 -o a.o -c {unity}"}]))
    code, out = tidy()
    assert code not in (0, 3), out
    assert "clang-tidy on 2 files" in out and "invalid case style for parameter 'BadName'" in out, out


@pytest.mark.parametrize("body, complaint", [
    ("MutexLock lock(mutex_); return ++count_;", None),
    ("return ++count_;", "requires holding mutex 'mutex_'"),
    ("MutexLock lock(mutex_); lock.unlock(); return ++count_;", "requires holding mutex 'mutex_'"),
])
def test_a_field_used_without_its_mutex_is_refused(tmp_path, body, complaint):
    """By the flags that the build asan has."""
    if not shutil.which("clang++-19"):
        pytest.skip("clang++-19 is not installed")
    flags = re.search(r"add_compile_options\((-Wthread-safety [^)]*)\)", (REPO / "CMakeLists.txt").read_text()).group(1).split()
    (tmp_path / "a.cc").write_text(
        '#include "runtime/base/mutex.h"\nnamespace hvd {\nclass Counter {\n public:\n'
        f"  int Next() {{ {body} }}\n private:\n  Mutex mutex_;\n  int count_ HVD_GUARDED_BY(mutex_) = 0;\n}};\n"
        "int Use(Counter& counter) { return counter.Next(); }\n}  // namespace hvd\n")
    done = subprocess.run(["clang++-19", "-std=gnu++20", "-fsyntax-only", f"-I{REPO}", *flags, tmp_path / "a.cc"],
                          capture_output=True, text=True, timeout=DEADLINE)
    assert (done.returncode == 0) == (complaint is None), done.stdout + done.stderr
    assert complaint is None or complaint in done.stderr, done.stderr


# $FAILS: a word of the command that fails.
FAILS = """
case "$*" in *"$FAILS"*) echo "FAILED test/a.py::test_b - why"; exit 1 ;; esac
case "$*" in *"-N -L unit"*) echo "  Test #1: unit_base" ;; *slowness.py*) echo 1.5 ;; esac
"""


@pytest.fixture
def all_tests(tree):
    """run(option, fails=""): what `test.sh` prints, and what it ends with, while the program whose arguments have the word `fails`
    does fail. Each part takes no time."""
    root = tree / "tree"
    script = root / "scripts" / "test.sh"
    script.write_text(script.read_text().replace("/usr/bin/python3", str(tree / "path" / "python3")))
    (tree / "path" / "dpkg-query").write_text("#!/bin/sh\nprintf 'install ok installed'\n")
    for folder in ("autotune", "cmd", "configs", "discovery", "launcher", "runtime", "timeline"):
        (root / folder).mkdir()
    programs = [tree / "path" / name for name in ("cmake", "ctest", "python3", "clang-format", "clang-tidy", "clang++-19")]
    kubernetes = tree / ".cache/hvdrun/kubernetes-venv"
    old_jax = re.search(r"^OLD_JAX=\((.*?)\)", script.read_text(), re.M).group(1).split()
    old_tensorflow = re.search(r"^OLD_TENSORFLOW=\((.*?)\)", script.read_text(), re.M).group(1).split()
    venvs = [tree / "venv", *(tree / f"venv-{version}" for version in (*old_jax, *old_tensorflow))]
    tools = tree / ".cache/hvdrun/tools-venv"
    for path in (*programs, tools / "bin/mkdocs", tools / "bin/reuse", root / "build-asan/fuzz/fuzz_argv", *(venv / "bin/python" for venv in venvs), root / "scripts/build_wheel.sh",
                 root / "scripts/test_aarch64.sh", kubernetes / "bin/python"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTE + FAILS)
        path.chmod(0o755)
    (root / "test/fuzz").mkdir(parents=True)
    (root / "test/fuzz/argv_fuzz.cc").touch()
    for tests, venv in (("kubernetes", kubernetes), ("packages", tree / ".cache/hvdrun/packaging-venv")):
        for folder in (root / "test" / tests, venv):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "requirements.txt").touch()
    (root / "test/quarantine.txt").write_text("# none but:\n2026-01-31 test_a.py::test_b slow\n")
    shutil.copy(REPO / "test" / "isolated.sh", root / "test")
    for folder in (tools, root / "scripts"):
        shutil.copy(REPO / "scripts" / "tools.txt", folder)

    def run_it(*options, fails="nothing of this"):
        env = {**environment(tree), "FAILS": fails, "HOME": str(tree), "HVD_FUZZ_SECONDS": "0",
               **{f"HVD_{framework}_VENV": str(tree / "venv") for framework in ("TORCH", "TENSORFLOW", "JAX", "JUPYTER", "MXNET")}}
        done = subprocess.run([script, *options], env=env, capture_output=True, text=True, timeout=DEADLINE)
        return done.returncode, done.stdout

    return run_it


FORMAT, UNIT, FAST = "clang-format --dry-run -Werror", "ctest --preset release", "ctest --preset release -j"
SYSTEM, PYTHON, ASAN, TSAN = "test/system", "test/python", "ctest --preset asan -L unit|contract", "ctest --preset tsan"
EACH_TIER = [
    ("--quick", [FORMAT, "test/architecture", "--target unit_base", "-L unit"], ["apt-get", SYSTEM, PYTHON, ASAN]),
    (None, [FORMAT, "--build --preset release", FAST, PYTHON, SYSTEM], [ASAN, TSAN, "test/chaos", "fuzz_argv"]),
    ("--ci", ["--build --preset ci", FAST, PYTHON, SYSTEM, ASAN, "build --strict", "lint --quiet", "fuzz_argv -verbosity=0 -runs="], [TSAN, "test/chaos", "-max_total_time"]),
    ("--all", ["--build --preset ci", "fuzz_argv -verbosity=0 -runs="], [TSAN]),
    ("--soak", ["--build --preset release", SYSTEM, PYTHON, ASAN, TSAN, "test/chaos", "fuzz_argv -verbosity=0 -max_total_time="], []),
]


@pytest.mark.parametrize("option, runs, leaves", EACH_TIER, ids=lambda value: value if isinstance(value, str) else "")
def test_each_tier_runs_its_parts_and_names_them_with_their_budgets(tree, all_tests, option, runs, leaves):
    code, out = all_tests(*[option] if option else [])
    assert code == 0 and out.endswith("[test.sh] all passed\n"), out
    ran = (tree / "notes").read_text()
    assert [words for words in runs if words not in ran] == [] and [words for words in leaves if words in ran] == [], ran
    summary = out.split("[test.sh] summary of")[1]
    assert "1 tests in quarantine" in summary and "time limits times 1.5" in summary, summary
    assert len(re.findall(r"^  ok +\d+ s of \d+ s ", summary, re.M)) >= (0 if option == "--soak" else 4), summary
    assert "FAILED" not in summary


@pytest.mark.parametrize("option, fails, named", [
    ("--ci", "--build --preset asan", "build of asan"),
    ("--quick", "--dry-run", "clang-format"),
    ("--ci", "test/kubernetes", "test/kubernetes"),
    ("--ci", "--preset release -j", "unit, contract, simulation and model tests"),
])
def test_a_part_that_fails_fails_the_run_and_the_others_go_on(all_tests, option, fails, named):
    """Also the names of its tests are in the summary: the end of a log is often all that is left of it."""
    code, out = all_tests(option, fails=fails)
    summary = out.split("[test.sh] summary of")[1]
    failed, = re.findall(r"^  FAILED +\d+ s .*$", summary, re.M)
    assert code == 1 and named in failed and out.endswith("1 FAILED\n"), out
    assert re.search(r"FAILED +\d+ s .*\n +FAILED test/a.py::test_b - why\n", summary), out
    assert len(re.findall(r"^  ok ", summary, re.M)) >= 3


@pytest.mark.parametrize("option, code", [("--ci", 0), ("--soak", 1)])
def test_a_wheel_whose_sources_nobody_has_is_left_out_by_ci_and_fails_a_release(tree, all_tests, option, code):
    (tree / "tree/scripts/build_wheel.sh").write_text("#!/bin/sh\necho '[third_parties.sh] zlib 1 is not to be had any more'\nexit 3\n")
    ended, out = all_tests(option)
    summary = out.split("[test.sh] summary of")[1]
    assert ended == code and ("zlib 1 is not to be had any more" in summary) == (code == 0), out
    assert len(re.findall(r"^  FAILED +\d+ s +the wheel$", summary, re.M)) == code, summary


def test_a_run_that_is_stopped_says_what_it_knows(tree, all_tests):
    script = tree / "tree" / "scripts" / "test.sh"
    (tree / "path" / "ctest").write_text("#!/bin/sh\necho waiting\nexec sleep 600\n")
    process = subprocess.Popen([script, "--quick"], env={**environment(tree), "FAILS": "nothing of this"},
                               stdout=subprocess.PIPE, text=True, start_new_session=True)
    lines = iter(process.stdout.readline, "")
    assert any("build of the unit tests ..." in line for line in lines)
    os.killpg(process.pid, signal.SIGTERM)
    rest = process.communicate(timeout=DEADLINE)[0]
    assert process.returncode == 143 and "summary of tier quick" in rest, rest
    assert "stopped before the end, in: build of the unit tests" in rest


@pytest.mark.parametrize("words", [["--some"], ["--ci", "--soak"]])
def test_unknown_options_are_refused(all_tests, words):
    assert all_tests(*words)[0] == 2
