#!/usr/bin/env bash
# On a machine with a GPU: checks the kernels of libhvd_cuda.so against the processor and measures their share of the memory's
# bandwidth, checks them by compute-sanitizer where it is installed, runs the suite of horovod.torch with tensors on GPUs, kills
# ranks and looks for memory that they leave, and measures allreduces and steps of training beside raw NCCL. Writes one JSON summary.
# Without a GPU it says in one line what it leaves out, and that is no failure.
#   --build DIR    takes this build instead of making one; nothing is installed then. DIR needs lib/libhvd_cuda.so and
#                  test/hvd_gpu_check alone, and the machine neither packages nor network; with bin, lib and the Python
#                  that $PYTHON names (python3), which has PyTorch, the rest is run, too
#   --part PART    kernels, suite or perf alone, so that each takes less than ten minutes; adds to an earlier summary
#   --json FILE    where the summary goes (default: build/gpu.json)
#   --pack FILE    runs nothing: packs this script and what it needs of a build into a .tar.gz for such a machine, where
#                  `tar xzf FILE && hvd-gpu/scripts/test_gpu.sh --build hvd-gpu/build` runs it
# Exit codes: 0 all passed, or left out because there is no GPU or no CUDA in the build ("device" is null in the summary);
# 1 something failed; 2 an option is wrong.
caller="$PWD"
source "$(dirname "$0")/common.sh"

build="$HVD_ROOT/build"
json=""
pack=""
given=0
part=all
# A path as it was meant where the script was called.
from_caller() {
  case "$1" in /*) echo "$1" ;; *) echo "$caller/$1" ;; esac
}
while [[ $# -gt 0 ]]; do
  case "$1" in
    --build | --json | --part | --pack) [[ $# -ge 2 ]] || { say "$1 needs a value" && exit 2; } ;;
    *) say "unknown option '$1': --build DIR, --json FILE, --pack FILE or --part kernels|suite|perf" && exit 2 ;;
  esac
  case "$1" in
    --build) build="$(from_caller "$2")" && given=1 ;;
    --json) json="$(from_caller "$2")" ;;
    --part) part="$2" ;;
    --pack) pack="$(from_caller "$2")" ;;
  esac
  shift 2
done
json="${json:-$build/gpu.json}"
case "$part" in
  all | kernels | suite | perf) ;;
  *) say "unknown part '$part': kernels, suite or perf" && exit 2 ;;
esac

# left_out "reason": one line, and the same in the summary.
left_out() {
  local reason="${1//\\/\\\\}"
  printf '{"device": null, "left_out": "%s"}\n' "${reason//\"/\\\"}" >"$json"
  say "left out: kernels of libhvd_cuda.so against the processor, and their speed, because: $1"
  exit 0
}

# Of the build: the programs, the libraries and the check, all stripped; of the tree: the suite, its workers and the package.
pack_build() {
  local most=$((60 * 1024 * 1024)) folder size file
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
  local to="$folder/hvd-gpu"
  mkdir -p "$to/build/bin" "$to/build/lib" "$to/build/test" "$to/runtime" "$to/test/python"
  for file in bin/hvdrun bin/hvd_perf lib/libhvd.so lib/libhvd_cuda.so test/hvd_gpu_check; do
    [[ -f "$build/$file" ]] || { say "there is no $build/$file: build with HVD_WITH_CUDA=ON first" && exit 1; }
    cp "$build/$file" "$to/build/$file"
    strip --strip-unneeded "$to/build/$file"
  done
  ln -s libhvd.so "$to/build/lib/libhvd.so.1"  # for hvd_perf
  cp -r runtime/python "$to/runtime/python"
  cp -r test/gpu "$to/test/gpu"
  cp -r test/python/workers "$to/test/python/workers"
  mkdir "$to/scripts" && cp scripts/test_gpu.sh scripts/common.sh "$to/scripts"
  find "$to" -name __pycache__ -prune -exec rm -rf {} +
  size="$(du -sb "$to" | cut -f 1)"
  ((size < most)) || { say "FAILED: it has $((size >> 20)) MiB, and 60 MiB is the limit" && exit 1; }
  tar -C "$folder" -czf "$pack" hvd-gpu
  say "packed $((size >> 20)) MiB into $pack"
  exit 0
}

if [[ $given == 0 ]]; then
  scripts/install_deps.sh
  HVD_WITH_CUDA=AUTO scripts/build.sh release
fi
[[ -z "$pack" ]] || pack_build
check="$build/test/hvd_gpu_check"
mkdir -p "$(dirname "$json")"
[[ -x "$check" ]] || left_out "there is no $check: this build has no CUDA"

# run_sanitizer: the checks again, under each tool of compute-sanitizer; sets `sanitized` to its part of the summary. 1: one complains.
sanitized=""
run_sanitizer() {
  local program tool rc=0 results=""
  program="$(PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin" command -v compute-sanitizer || true)"
  if [[ -z "$program" ]]; then
    say "left out: compute-sanitizer on the kernels, because it is not installed (it comes with CUDA's toolkit)"
    sanitized='"sanitizer": {"left_out": "compute-sanitizer is not installed"}'
    return 0
  fi
  for tool in memcheck racecheck synccheck; do
    say "compute-sanitizer --tool $tool ..."
    if timeout 150 "$program" --tool "$tool" --error-exitcode 9 "$check" "$build/lib" --only-checks >"$summary.err" 2>&1; then
      results+="${results:+, }\"$tool\": \"ok\""
    else
      tail -n 30 "$summary.err"
      results+="${results:+, }\"$tool\": \"FAILED\""
      rc=1
    fi
  done
  sanitized="\"sanitizer\": {$results}"
  return $rc
}

# run_suite: what needs PyTorch; adds to the summary, and ends the script.
run_suite() {
  local parts=()
  if [[ ! -x "$build/bin/hvdrun" ]]; then
    say "all passed; the summary is in $json; left out: PyTorch's suite and hvd_perf, because there is no $build/bin/hvdrun"
    exit 0
  fi
  [[ "$part" == all ]] || parts=(--part "$part")
  say "running PyTorch's suite on the GPU ..."
  "${PYTHON:-python3}" test/gpu/gpu_suite.py --build "$build" --json "$json" "${parts[@]}" || { say "FAILED" && exit 1; }
  say "all passed; the summary is in $json"
  exit 0
}
[[ "$part" == all || "$part" == kernels ]] || run_suite

say "checking and measuring the GPU ..."
rc=0
summary="$(mktemp)"
trap 'rm -f "$summary" "$summary.err"' EXIT
"$check" "$build/lib" >"$summary" 2>"$summary.err" || rc=$?
case $rc in
  0)
    run_sanitizer || rc=1
    text="$(cat "$summary")"
    printf '%s, %s}\n' "${text%\}}" "$sanitized" >"$json"
    [[ $rc == 0 ]] || { say "FAILED: compute-sanitizer complains" && exit 1; }
    [[ "$part" == kernels ]] || run_suite
    say "all passed; the summary is in $json"
    ;;
  3) left_out "$(head -n 1 "$summary.err")" ;;
  *)
    cat "$summary.err"
    [[ ! -s "$summary" ]] || mv "$summary" "$json"
    say "FAILED ($rc)"
    exit 1
    ;;
esac
