#!/usr/bin/env bash
# Installs, builds and runs the tests.
#   --all    what CI runs: also under the sanitizers, every fuzzer for 8 s (HVD_FUZZ_SECONDS), and the Python suites with
#            the newest PyTorch of PyPI
#   --soak   the tests that need hundreds of rounds run them (HVD_SOAK=1), and clang-tidy looks at all files
source "$(dirname "$0")/common.sh"

all=0
for option in "$@"; do
  case "$option" in
    --all) all=1 ;;
    --soak) export HVD_SOAK=1 ;;
    *) say "unknown option '$option': --all or --soak" && exit 2 ;;
  esac
done

PYTHON=/usr/bin/python3
TORCH_VENV="${HVD_TORCH_VENV:-$HOME/.cache/hvdrun/torch-venv}"
FUZZ_SECONDS="${HVD_FUZZ_SECONDS:-8}"
summary=()
failures=0
export PYTHONDONTWRITEBYTECODE=1

# suite "words" command...: runs it with its output on the screen and notes the result for the summary.
suite() {
  local what="$1" start=$SECONDS result=ok
  shift
  say "$what ..."
  "$@" || { result="FAILED" && failures=$((failures + 1)); }
  summary+=("$(printf '%-6s %4d s  %s' "$result" $((SECONDS - start)) "$what")")
}

left_out() { summary+=("$(printf '%-6s         %s' "-" "$1")"); }

# On changed files; on all with --soak.
tidy_suite() {
  local what="clang-tidy of changed files" mode=() start=$SECONDS rc=0
  [[ "${HVD_SOAK:-0}" == 0 ]] || { what="clang-tidy of all files" && mode=(--all); }
  say "$what ..."
  tidy_log=$(mktemp)
  scripts/tidy.sh "${mode[@]}" 2>&1 | tee "$tidy_log" || rc=${PIPESTATUS[0]}
  case $rc in
    0) summary+=("$(printf '%-6s %4d s  %s' ok $((SECONDS - start)) "$what")") ;;
    3) left_out "$what: $(tail -n 1 "$tidy_log" | sed 's/^\[[^]]*\] //')" ;;
    *) summary+=("$(printf '%-6s %4d s  %s' FAILED $((SECONDS - start)) "$what")") && failures=$((failures + 1)) ;;
  esac
  rm -f "$tidy_log"
}

pytest_suites() {
  local python="$1" words="$2" folder
  shift 2
  for folder in "$@"; do
    compgen -G "$folder/test_*.py" >/dev/null || continue
    suite "$folder, $words" "$python" -m pytest -q --durations=8 -p no:cacheprovider "$folder"
  done
}

# Those over namespaced hosts mostly wait for timeouts and connections, so they run beside the others; their output comes
# when both are through. Neither sees the processes of the other: an hvdrun looks for dead jobs of its user, and ends them.
begin_host_tests() {
  local hosts apart=(unshare --pid --fork --kill-child --mount-proc)
  "${apart[@]}" true 2>/dev/null || apart=()
  mapfile -t hosts < <(grep -l '^from host_rig import' test/system/test_*.py)
  host_log=$(mktemp)
  "${apart[@]}" "$PYTHON" -m pytest -q --durations=8 -p no:cacheprovider "${hosts[@]}" >"$host_log" 2>&1 &
  host_tests=$!
}

system_suites() {
  local others
  mapfile -t others < <(grep -L '^from host_rig import' test/system/test_*.py)
  suite "test/system on one machine, Debian's Python" "$PYTHON" -m pytest -q --durations=8 -p no:cacheprovider "${others[@]}"
  suite "test/chaos, its seed above" "$PYTHON" -m pytest -q --durations=8 -p no:cacheprovider test/chaos
  suite "test/system over namespaced hosts, beside those of Python and system" wait "$host_tests"
  cat "$host_log" && rm -f "$host_log"
}

# The other builds take the time in which the tests wait: SCHED_IDLE gives them a processor only while nothing else wants it.
begin_other_builds() {
  scripts/install_deps.sh --fuzz
  builds_log=$(mktemp)
  (
    rc=0
    for preset in asan tsan fuzz; do chrt --idle 0 scripts/build.sh "$preset" || rc=1; done
    exit "$rc"
  ) >"$builds_log" 2>&1 &
  builds=$!
}

end_other_builds() {
  suite "builds of asan, tsan and the fuzzers, beside all tests above" wait "$builds"
  cat "$builds_log" && rm -f "$builds_log"
}

sanitizer_suites() {
  suite "unit and contract tests under asan" ctest --preset asan -L 'unit|contract' -j "$(nproc)"
  # contract_backend plays all ranks in one thread: nothing there can race, and it is as long as all others together.
  suite "unit and contract tests under tsan" \
    ctest --preset tsan -L 'unit|contract' -E '^contract_backend$' -j "$(nproc)"
}

fuzz_suites() {
  local fuzzer names=()
  for fuzzer in test/fuzz/*_fuzz.cc; do
    names+=("$(basename "$fuzzer" _fuzz.cc)")
    mkdir -p "build-fuzz/corpus/${names[-1]}"
  done
  # As many at a time as there are cores; one that finds something names it, and fails the suite.
  suite "fuzzing for $FUZZ_SECONDS s each: ${names[*]}" xargs -P "$(nproc)" -I{} env \
    build-fuzz/fuzz/fuzz_{} -verbosity=0 -max_total_time="$FUZZ_SECONDS" -max_len=4096 \
    -artifact_prefix=build-fuzz/corpus/{}- build-fuzz/corpus/{} < <(printf '%s\n' "${names[@]}")
}

# Gigabytes to load and unpack: beside the tests, too. After install_deps --fuzz, since apt has one lock.
begin_torch_install() {
  torch_log=$(mktemp)
  chrt --idle 0 scripts/install_deps.sh --pypi-torch >"$torch_log" 2>&1 &
  torch_install=$!
}

newest_torch_suites() {
  local rc=0
  wait "$torch_install" || rc=$?
  cat "$torch_log" && rm -f "$torch_log"
  if [[ $rc == 0 ]]; then
    # What the runtime does with ranks is the same under every PyTorch; the matrix has the types of the newest one.
    suite "test/python without test_collectives.py and test_jobs.py, newest PyTorch" \
      "$TORCH_VENV/bin/python" -m pytest -q --durations=8 -p no:cacheprovider \
      --ignore test/python/test_collectives.py --ignore test/python/test_jobs.py test/python
  elif [[ $rc == 3 ]]; then
    left_out "test/python, newest PyTorch: not enough disk, see above"
  else
    suite "PyTorch of PyPI could not be installed" false
  fi
}

scripts/install_deps.sh
scripts/build.sh release
if [[ $all == 1 ]]; then
  begin_other_builds
  begin_torch_install
fi
suite "clang-format: every C++ file is formatted" scripts/format.sh --check
tidy_suite
suite "unit, contract and simulation tests" ctest --preset release -j "$(nproc)"
begin_host_tests
pytest_suites "$PYTHON" "Debian's Python" test/architecture test/python
system_suites
if [[ $all == 1 ]]; then
  end_other_builds
  suite "clang: each field with its mutex" scripts/thread_safety.sh
  sanitizer_suites
  fuzz_suites
  newest_torch_suites
fi

echo
say "summary after $SECONDS s:"
printf '  %s\n' "${summary[@]}"
if [[ $failures != 0 ]]; then
  say "$failures FAILED"
  exit 1
fi
say "all passed"
