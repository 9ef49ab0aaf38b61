"""The commands by which the scripts install and build, seen in a copy of them with programs of ours on PATH."""

import json
import os
import pty
import re
import shutil
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
    (lambda path: os.truncate(path, 61 << 20), "FAILED: it has 61 MiB, and 60 MiB is the limit"),
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


def test_the_quickstart_builds_no_tests_and_accepts_warnings(tree):
    run(tree, "quickstart.sh")
    configure, build = noted(tree, "cmake")
    assert "--preset product" in configure and "-DHVD_WERROR=OFF" in configure
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


# $FAILS: a word of the command that fails; $FEW: pytest notes so many failed tests; $MENDED: the word of the repetition that passes.
FAILS = """
case "$*" in
  *"$MENDED"*) ;;
  *"$FAILS"*)
    echo "FAILED test/a.py::test_b - why"
    noted=build/Testing/Temporary/LastTestsFailed.log
    case "$*" in *"--preset release -j"*) mkdir -p "${noted%/*}" && yes '7:unit_wire' | head -n "$FEW" >"$noted" ;; esac
    for word; do
      case "$word" in cache_dir=*) mkdir -p "${word#*=}/v/cache" && yes '"x": true,' | head -n "$FEW" >"${word#*=}/v/cache/lastfailed" ;; esac
    done
    exit 1 ;;
esac
"""


@pytest.fixture
def all_tests(tree):
    """run(fails=""): what `test.sh --all` prints, and what it ends with, while the program whose arguments have the word `fails`
    does fail. Each suite takes no time."""
    root = tree / "tree"
    script = root / "scripts" / "test.sh"
    script.write_text(script.read_text().replace("/usr/bin/python3", str(tree / "path" / "python3")))
    (tree / "path" / "dpkg-query").write_text("#!/bin/sh\nprintf 'install ok installed'\n")
    # Nothing here computes, so that nothing has to give way: a busy machine would make a scheduling class of "idle" wait.
    (tree / "path" / "chrt").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    (tree / "path" / "chrt").chmod(0o755)
    fails = FAILS
    for folder in ("autotune", "cmd", "configs", "discovery", "launcher", "runtime", "timeline"):
        (root / folder).mkdir()
    programs = [tree / "path" / name for name in ("cmake", "ctest", "python3", "clang-format", "clang-tidy", "clang++-19")]
    for path in (*programs, root / "build-asan/fuzz/fuzz_argv", tree / "venv/bin/python"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTE + fails)
        path.chmod(0o755)
    for name in ("test/fuzz/argv_fuzz.cc", "test/system/test_run.py", "test/system/test_hosts.py", "test/architecture/test_architecture.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from host_rig import rig\n" if "hosts" in name else "")

    def run_it(fails="nothing of this", few=11, mended="nothing of this"):
        env = {**environment(tree), "FAILS": fails, "FEW": str(few), "MENDED": mended, "HVD_TORCH_VENV": str(tree / "venv"), "HVD_FUZZ_SECONDS": "0", "HVD_TEST_PARTS": "1"}
        done = subprocess.run([script, "--all"], env=env, capture_output=True, text=True, timeout=DEADLINE)
        return done.returncode, done.stdout

    return run_it


def test_every_suite_of_all_tests_runs_and_is_in_the_summary(tree, all_tests):
    code, out = all_tests()
    assert code == 0, out
    assert out.endswith("[test.sh] all passed\n")
    ran = (tree / "notes").read_text()
    for words in ("--build --preset ci", "--build --preset asan", "--build --preset tsan",
                  "ctest --preset release", "ctest --preset asan -L unit|contract", "ctest --preset tsan", "clang-format --dry-run -Werror",
                  "test/architecture", "test/system/test_run.py", "test/system/test_hosts.py", "test/chaos", "fuzz_argv", "test/python"):
        assert words in ran, words
    summary = out.split("summary after")[1]
    assert "clang-tidy of changed files: build/compile_commands.json is missing: run" in summary, summary
    assert summary.count(" ok ") == 13, summary


@pytest.mark.parametrize("fails, suite", [
    ("--build --preset tsan", "builds of asan, with the fuzzers, and tsan"),
    ("--dry-run", "clang-format"),
    ("test/system/test_hosts.py", "test/system over namespaced hosts"),
])
def test_what_fails_beside_others_fails_all(all_tests, fails, suite):
    code, out = all_tests(fails)
    assert code == 1
    assert "FAILED" in out.split("summary after")[1]
    failed, = re.findall(r"^  FAILED +\d+ s  .*$", out.split("summary after")[1], re.M)
    assert suite in failed, out


def test_the_summary_names_the_tests_that_failed(all_tests):
    """The end of a log is often all that is left of it."""
    _, out = all_tests("test/system/test_hosts.py")
    assert re.search(r"FAILED +\d+ s  test/system over namespaced hosts, .*\n +FAILED test/a.py::test_b - why\n", out.split("summary after")[1]), out
    assert out.endswith("1 FAILED\n")


@pytest.mark.parametrize("fails, suite, again", [
    ("test/system/test_run.py", "test/system on one machine, Debian's Python", "--last-failed"),
    ("test/chaos", "test/chaos, its seed above", "--last-failed"),
    ("--preset release -j", "programs of tests over the release", "--rerun-failed"),
])
def test_a_test_that_fails_beside_others_is_repeated_alone(all_tests, fails, suite, again):
    """The summary names it; the suite has failed if it fails again, or if more than ten tests failed."""
    code, out = all_tests(fails, few=10, mended=again)
    summary = out.split("summary after")[1]
    assert code == 0 and re.search(rf"AGAIN +\d+ s  {suite}\n +FAILED test/a.py::test_b - why\n", summary), out
    assert re.search(rf"ok +\d+ s  again, alone: {suite}\n", summary), out
    code, out = all_tests(fails, few=10)
    assert code == 1 and re.search(rf"FAILED +\d+ s  again, alone: {suite}\n", out), out
    code, out = all_tests(fails, few=11, mended=again)
    assert code == 1 and "again, alone" not in out, out
