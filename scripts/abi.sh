#!/usr/bin/env bash
# abi.sh [--write]: compares the interface of runtime/include/hvd/hvd.h with runtime/api/hvd.abi, the dump of the one that programs were
# linked against; --write makes the dump anew. A change that breaks programs needs a new HVD_ABI_VERSION, name (libhvd.so.2) and version
# node. The types are read from a library that has the header's functions and nothing else, compiled with debug information, which no build
# of libhvd.so has; the symbols of libhvd.so itself are test/system/test_c_abi.py's.
source "$(dirname "$0")/common.sh"
DUMP=runtime/api/hvd.abi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Each prototype of the header as a function that does nothing.
stubs() {
  python3 - <<'PYTHON'
import re
text = open("runtime/include/hvd/hvd.h").read()
text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
print("#include <hvd/hvd.h>")
for prototype in re.findall(r"^HVD_EXPORT\s+([^;]*);", text, re.M):
    print(prototype, "{ __builtin_trap(); }")
PYTHON
}

dump() {
  cp -r runtime/include "$scratch/include"
  stubs >"$scratch/stubs.c"
  (cd "$scratch" && cc -std=c11 -g -fno-eliminate-unused-debug-types -fvisibility=hidden -shared -fPIC -Iinclude -w -o libhvd.so stubs.c \
    -Wl,-soname,libhvd.so.1 -Wl,--version-script="$HVD_ROOT/runtime/api/exports.map")
  abidw --no-corpus-path --no-comp-dir-path --no-show-locs --load-all-types --out-file "$1" "$scratch/libhvd.so"
}

command -v abidw >/dev/null || { say "abidw is missing: apt-get install abigail-tools" && exit 3; }
case "${1:-}" in
  --write) dump "$DUMP" ;;
  "")
    dump "$scratch/now.abi"
    abidiff --no-corpus-path --non-reachable-types "$DUMP" "$scratch/now.abi" || { say "the interface is not that of $DUMP: see above; scripts/abi.sh --write" && exit 1; }
    ;;
  *) say "unknown option '$1': --write" && exit 2 ;;
esac
