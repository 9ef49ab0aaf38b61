# shellcheck shell=bash
# Sourced by the other scripts: the root of the repository, and steps that say what they do and how long it took.
set -euo pipefail
HVD_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$HVD_ROOT"

say() { printf '[%s] %s\n' "$(basename "$0")" "$*"; }

# progress_step "words" command...: a step whose output is on the screen where that is a terminal: it shows how far it is.
progress_step() {
  if [[ -t 1 ]]; then
    HVD_VERBOSE=1 step "$@"
  else
    step "$@"
  fi
}

# step "words" command...: runs the command, shows its output only when it fails (or HVD_VERBOSE=1), says the seconds.
step() {
  local what="$1" start=$SECONDS log rc=0
  shift
  say "$what ..."
  if [[ "${HVD_VERBOSE:-0}" == 1 ]]; then
    "$@" || rc=$?
  else
    log="$(mktemp)"
    "$@" >"$log" 2>&1 || rc=$?
    if [[ $rc != 0 ]]; then tail -n 200 "$log"; fi
    rm -f "$log"
  fi
  if [[ $rc == 0 ]]; then say "$what: done in $((SECONDS - start)) s"; else say "$what: FAILED ($rc) after $((SECONDS - start)) s"; fi
  return $rc
}

# Whether CMake will find one (hvd_find_nvcc in CMakeLists.txt).
has_nvcc() { command -v nvcc >/dev/null || [[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || -x /usr/local/cuda/bin/nvcc ]]; }

# ON where g++ is the one that CI has; another version may warn of other things. The same for all presets of one build folder, or the
# next preset would compile everything again.
warnings_are_errors() {
  case "$(g++ -dumpversion 2>/dev/null)" in
    12 | 12.*) echo ON ;;
    *) echo OFF ;;
  esac
}
