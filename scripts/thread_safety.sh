#!/usr/bin/env bash
# Checks which mutex guards what: clang's -Wthread-safety over all files with a Mutex (runtime/base/mutex.h). Compiles nothing.
source "$(dirname "$0")/common.sh"
[[ $# == 0 ]] || { say "unknown option '$1': there are none" && exit 2; }
command -v clang++ >/dev/null || { say "clang++ is not installed: apt-get install clang" && exit 1; }

# The files themselves, and the .cc of each header.
mapfile -t files < <(
  grep -rl --include='*.h' --include='*.cc' '#include "runtime/base/mutex.h"' autotune cmd configs discovery launcher runtime timeline |
    while read -r file; do
      echo "$file"
      [[ ! -f "${file%.h}.cc" ]] || echo "${file%.h}.cc"
    done | sort -u
)
[[ ${#files[@]} != 0 ]] || { say "no file has a Mutex" && exit 1; }
# The headers of Open MPI, for the files that include them.
includes=(-I. -Iruntime/include)
if command -v mpicxx >/dev/null; then
  for folder in $(mpicxx --showme:incdirs); do includes+=(-isystem "$folder"); done
else
  mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v '^runtime/backends/mpi/')
  say "left out, since Open MPI is not installed: runtime/backends/mpi"
fi
say "clang's thread safety analysis of ${#files[@]} files ..."
printf '%s\0' "${files[@]}" |
  xargs --null -P "$(nproc)" -n 1 clang++ -x c++ -std=gnu++20 -fsyntax-only "${includes[@]}" \
    -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -Wthread-safety -Werror
