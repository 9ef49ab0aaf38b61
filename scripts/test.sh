#!/usr/bin/env bash
# Installs, builds and runs the tests.
#   --all    what CI runs: also under the sanitizers, every fuzzer for 3 s (HVD_FUZZ_SECONDS), and the Python suites with
#            the newest PyTorch of PyPI; but of a parametrized test an eighth of the variants, another one each day, and half
#            of the tests that take long: HVD_TEST_PART=0 to 7 chooses, and HVD_TEST_PARTS=1 runs all of them
#   --soak   the tests that need hundreds of rounds run them (HVD_SOAK=1), clang-tidy looks at all files, and the sanitizers
#            run all of their tests, those of launcher and GPUs under ThreadSanitizer, too
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
FUZZ_SECONDS="${HVD_FUZZ_SECONDS:-3}"
PYTEST=(-m pytest -q --durations=8)
SAME_UNDER_EVERY_TORCH=(
  --ignore test/python/test_collectives.py --ignore test/python/test_elastic.py --ignore test/python/test_examples.py
  --ignore test/python/test_jobs.py --ignore test/python/test_runner.py --ignore test/python/test_timeline.py
  --deselect test/python/test_gpu_tensors.py::test_the_script_for_machines_with_gpus
  --deselect "test/python/test_matrix.py::test_P40_every_type_operation_and_set[5-"
  --deselect "test/python/test_matrix.py::test_P40_every_type_operation_and_set[8-")
summary=()
current_suite="the build"
again=()  # commands
failures=0
background=()  # process groups
scratch=$(mktemp -d)
trap clean_up EXIT
trap stopped TERM INT
export PYTHONDONTWRITEBYTECODE=1

# choose_part: what test/variants.py and the suites under sanitizers run of the variants of a test.
choose_part() {
  [[ $all == 1 && "${HVD_SOAK:-0}" == 0 ]] || HVD_TEST_PARTS=1
  export HVD_TEST_PARTS="${HVD_TEST_PARTS:-8}"
  export HVD_TEST_PART="$((${HVD_TEST_PART:-$(date +%-j)} % HVD_TEST_PARTS))"
  part_words=""
  [[ $HVD_TEST_PARTS == 1 ]] || part_words=", part HVD_TEST_PART=$HVD_TEST_PART of $HVD_TEST_PARTS"
}
choose_part

clean_up() {
  local group
  for group in "${background[@]}"; do kill -- "-$group" 2>/dev/null || true; done
  rm -rf "$scratch"
}

# mpi_folder NAME: prints a folder for the sessions of Open MPI. Two programs of Open MPI 4 that make the session folder of their
# host at the same time fail ("mkdir ... File exists"), and the last one that ends removes it. So it is there already, and stays.
mpi_folder() {
  local sessions
  sessions="$scratch/$1/ompi.$(uname -n | cut -d. -f1).$(id -u)"
  mkdir -p "$sessions/kept" && chmod 700 "$sessions"
  echo "$scratch/$1"
}

# note RESULT START "words": a line of the summary, which is also said at once: a run that is cut short has told how far it was.
note() {
  summary+=("$(printf '%-6s %4d s  %s' "$1" $((SECONDS - $2)) "$3")")
  say "at $SECONDS s: ${summary[-1]}"
}

# suite "words" command...: runs it with its output on the screen and notes the result for the summary, with the names of
# the tests that failed: the end of a log is often all that is left of it.
suite() {
  local start=$SECONDS
  if run_suite "$@"; then note ok "$start" "$1"; else note_failure "$start" "$1"; fi
}

run_suite() {
  current_suite="$1"
  say "$1 ..."
  suite_log=$(mktemp -p "$scratch")
  shift
  "$@" > >(tee "$suite_log") 2>&1
}

note_failure() {
  failures=$((failures + 1))
  note FAILED "$@"
  failed_tests "$suite_log"
}

# crowded_pytest "words" CACHE command...: pytest while other suites and builds share the machine; CACHE is its folder for the names
# of failed tests.
crowded_pytest() {
  local start=$SECONDS rc=0
  run_suite "$1" "${@:3}" || rc=$?
  settle_crowded "$rc" "$start" "$1" "$2/v/cache/lastfailed" "${@:3}" --last-failed
}

# crowded_ctest "words" FOLDER command...: ctest in the same way; FOLDER is the build.
crowded_ctest() {
  local start=$SECONDS rc=0
  run_suite "$1" "${@:3}" || rc=$?
  settle_crowded "$rc" "$start" "$1" "$2/Testing/Temporary/LastTestsFailed.log" "${@:3}" --rerun-failed
}

# settle_crowded RC START "words" NAMES again...: a test that fails there may have been too slow for a limit. Up to ten are run again
# by the command `again` when the machine is quiet, and the suite has failed if one of them fails again. NAMES is the file that lists
# them. The summary names them in any case.
settle_crowded() {
  local rc="$1" start="$2" what="$3" names="$4"
  if [[ $rc == 0 ]]; then
    note ok "$start" "$what"
  elif few_failed "$names"; then
    note AGAIN "$start" "$what"
    failed_tests "$suite_log"
    again+=("$(printf '%q ' suite "again, alone: $what" "${@:5}")")
  else
    note_failure "$start" "$what"
  fi
}

few_failed() {
  local failed
  failed=$(grep -cE '": true|^[0-9]+:' "$1" 2>/dev/null) || return 1
  ((failed <= 10))
}

show_summary() {
  echo
  say "summary after $SECONDS s on $(nproc) processors ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), load $(cut -d' ' -f1-3 /proc/loadavg):"
  printf '  %s\n' "${summary[@]}"
}

# A run that somebody stops says what it knows.
stopped() {
  show_summary
  say "stopped before the end, in: $current_suite"
  exit 143
}

again_suites() {
  local command
  for command in "${again[@]}"; do eval "$command"; done
}

# The lines by which pytest, ctest and GoogleTest name a failed test, cut so that many fit.
failed_tests() {
  local line
  while IFS= read -r line; do
    summary+=("         ${line:0:200}")
  done < <(sleep 0.2 && grep -E '^(FAILED|ERROR) |^[[:space:]]+[0-9]+ - .* \([A-Z][A-Za-z ]*\)|^\[  FAILED  \] .* \(' "$1" | head -n 12)
}

left_out() { summary+=("$(printf '%-6s         %s' "-" "$1")"); }

# On changed files; on all with --soak.
tidy_suite() {
  local what="clang-tidy of changed files" mode=() start=$SECONDS rc=0
  [[ "${HVD_SOAK:-0}" == 0 ]] || { what="clang-tidy of all files" && mode=(--all); }
  say "$what ..."
  tidy_log=$(mktemp -p "$scratch")
  scripts/tidy.sh "${mode[@]}" 2>&1 | tee "$tidy_log" || rc=${PIPESTATUS[0]}
  case $rc in
    0) note ok "$start" "$what" ;;
    3) left_out "$what: $(tail -n 1 "$tidy_log" | sed 's/^\[[^]]*\] //')" ;;
    *) note FAILED "$start" "$what" && failures=$((failures + 1)) ;;
  esac
}

# compile_package PYTHON: once, or each of a thousand ranks does it, which is a fifth of its start.
compile_package() { "$1" -m compileall -q runtime/python/horovod; }

pytest_suites() {
  local python="$1" words="$2" folder part
  shift 2
  compile_package "$python"
  for folder in "$@"; do
    compgen -G "$folder/test_*.py" >/dev/null || continue
    [[ $folder == test/architecture ]] && part="" || part="$part_words"
    crowded_pytest "$folder, $words$part" "$scratch/$folder" "$python" "${PYTEST[@]}" -o cache_dir="$scratch/$folder" "$folder"
  done
}

# Those over namespaced hosts mostly wait for timeouts and connections, so they run beside those of one machine; their output comes
# when both are through. Not beside those of Python, which mostly import PyTorch: both would take twice as long. Neither sees the
# processes of the other: an hvdrun looks for dead jobs of its user, and ends them.
begin_host_tests() {
  local hosts apart=(unshare --pid --fork --kill-child --mount-proc)
  "${apart[@]}" true 2>/dev/null || apart=()
  mapfile -t hosts < <(grep -l '^from host_rig import' test/system/test_*.py)
  host_log=$(mktemp -p "$scratch")
  host_command=(env "OMPI_MCA_orte_tmpdir_base=$(mpi_folder mpi-of-hosts)" "${apart[@]}"
    "$PYTHON" "${PYTEST[@]}" -o cache_dir="$scratch/hosts" "${hosts[@]}")
  "${host_command[@]}" >"$host_log" 2>&1 &
  host_tests=$!
}

system_suites() {
  local others
  mapfile -t others < <(grep -L '^from host_rig import' test/system/test_*.py)
  crowded_pytest "test/system on one machine, Debian's Python$part_words" "$scratch/system" \
    "$PYTHON" "${PYTEST[@]}" -o cache_dir="$scratch/system" "${others[@]}"
  crowded_pytest "test/chaos, its seed above" "$scratch/chaos" "$PYTHON" "${PYTEST[@]}" -o cache_dir="$scratch/chaos" test/chaos
  local what="test/system over namespaced hosts, beside those of one machine$part_words" rc=0 start=$SECONDS
  run_suite "$what" output_of "$host_tests" "$host_log" || rc=$?
  settle_crowded "$rc" "$start" "$what" "$scratch/hosts/v/cache/lastfailed" "${host_command[@]}" --last-failed
}

# output_of PID LOG: waits for a command that was begun earlier, shows its output, and has its exit status.
output_of() {
  local rc=0
  wait "$1" || rc=$?
  cat "$2"
  return "$rc"
}

# in_idle_time LOG command...: begins it in the background, where it takes the time in which the tests wait. SCHED_IDLE gives it a
# processor only while nothing else of its session wants one; sessions share the processors alike (sched(7), "The autogroup
# feature"), and each worker of hvdrun has a session of its own. So this is a session, too, with the least weight. $! is its group.
in_idle_time() {
  local log="$1"
  shift
  setsid bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec chrt --idle 0 "$@"' in_idle_time "$@" >"$log" 2>&1 &
  background+=($!)
}

# Beside the tests of Python, those took a fifth longer, and next to nothing was built.
begin_other_builds() {
  builds_log=$(mktemp -p "$scratch")
  # shellcheck disable=SC2016  # expanded by the shell that runs it
  in_idle_time "$builds_log" bash -c 'rc=0; for preset in asan tsan; do scripts/build.sh "$preset" || rc=1; done; exit $rc'
  builds=$!
}

end_other_builds() {
  suite "builds of asan, with the fuzzers, and tsan, beside the tests of the system" output_of "$builds" "$builds_log"
}

# The tests of the backends take minutes under a sanitizer, so a part of them is run. contract_backend plays all ranks in one thread,
# so that nothing there can race.
sanitizer_suites() {
  local long='^contract_(backend|cross|cuda|engine|hosts)$' shard=(env "GTEST_TOTAL_SHARDS=$HVD_TEST_PARTS" "GTEST_SHARD_INDEX=$HVD_TEST_PART")
  suite "unit and contract tests under asan" ctest --preset asan -L 'unit|contract' -E "$long" -j "$(nproc)"
  suite "backends under asan$part_words" "${shard[@]}" ctest --preset asan -R "$long" -j "$(nproc)"
  suite "unit and contract tests under tsan" ctest --preset tsan -L 'unit|contract' -E "$long" -j "$(nproc)"
  suite "backends under tsan$part_words" "${shard[@]}" ctest --preset tsan -R "$long" -E '^contract_backend$' -j "$(nproc)"
}

fuzz_suites() {
  local fuzzer names=()
  for fuzzer in test/fuzz/*_fuzz.cc; do
    names+=("$(basename "$fuzzer" _fuzz.cc)")
    mkdir -p "build-asan/corpus/${names[-1]}"
  done
  # As many at a time as there are cores; one that finds something names it, and fails the suite.
  suite "fuzzing for $FUZZ_SECONDS s each: ${names[*]}" xargs -P "$(nproc)" -I{} env \
    ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-19/bin/llvm-symbolizer build-asan/fuzz/fuzz_{} -verbosity=0 -max_total_time="$FUZZ_SECONDS" -max_len=4096 \
    -artifact_prefix=build-asan/corpus/{}- build-asan/corpus/{} < <(printf '%s\n' "${names[@]}")
}

# Gigabytes to load and unpack, and hardly anything to compute: from the beginning, and not in idle time, of which a build leaves none.
begin_torch_install() {
  torch_log=$(mktemp -p "$scratch")
  setsid scripts/install_deps.sh --pypi-torch >"$torch_log" 2>&1 &
  torch_install=$!
  background+=("$torch_install")
}

newest_torch_suites() {
  local rc=0
  wait "$torch_install" || rc=$?
  cat "$torch_log"
  if [[ $rc == 0 ]]; then
    compile_package "$TORCH_VENV/bin/python"
    # The runtime's work with ranks is the same under every PyTorch; the matrix of up to four ranks has the types of the newest
    # one. As if it were crowded: a release of PyTorch that came out today may have races of its own.
    crowded_pytest "test/python, as far as it depends on PyTorch, newest PyTorch, other variants" "$scratch/newest" \
      env "HVD_TEST_PART=$((HVD_TEST_PART + 1))" "$TORCH_VENV/bin/python" "${PYTEST[@]}" -o cache_dir="$scratch/newest" "${SAME_UNDER_EVERY_TORCH[@]}" test/python
  elif [[ $rc == 3 ]]; then
    left_out "test/python, newest PyTorch: not enough disk, see above"
  else
    suite "PyTorch of PyPI could not be installed" false
  fi
}

OMPI_MCA_orte_tmpdir_base=$(mpi_folder mpi)
export OMPI_MCA_orte_tmpdir_base
scripts/install_deps.sh
if [[ $all == 0 ]]; then
  scripts/build.sh release
else
  scripts/install_deps.sh --sanitizers  # before PyTorch's, since apt has one lock
  begin_torch_install
  scripts/build.sh ci
fi
suite "clang-format: every C++ file is formatted" scripts/format.sh --check
tidy_suite
crowded_ctest "programs of tests over the release" build ctest --preset release -j "$(nproc)"
pytest_suites "$PYTHON" "Debian's Python" test/architecture test/python
begin_host_tests
[[ $all == 0 ]] || begin_other_builds
system_suites
if [[ $all == 1 ]]; then
  end_other_builds
  sanitizer_suites
  fuzz_suites
  newest_torch_suites
fi

again_suites
show_summary
if [[ $failures != 0 ]]; then
  say "$failures FAILED"
  exit 1
fi
say "all passed"
