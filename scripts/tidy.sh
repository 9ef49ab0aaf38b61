#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy has the checks) on the C++ files changed since the merge base with main; no finding is allowed.
#   --all    on all C++ files (half an hour of one core)
# Needs build/compile_commands.json of `scripts/build.sh release`. Exit code 3: nothing was checked, the last line says why.
source "$(dirname "$0")/common.sh"

all=0
case "${1:-}" in
  "") ;;
  --all) all=1 ;;
  *) say "unknown option '$1': the only option is --all" && exit 2 ;;
esac

leave_out() { say "$1" && exit 3; }

command -v clang-tidy >/dev/null || leave_out "clang-tidy is not installed: apt-get install clang-tidy"
[[ -f build/compile_commands.json ]] ||
  leave_out "build/compile_commands.json is missing: run scripts/build.sh release first"

# The changed .cc files, and those beside changed headers.
changed_files() {
  local base="" branch file
  for branch in main origin/main; do
    base="$(git merge-base HEAD "$branch" 2>/dev/null)" && break
  done
  [[ -n "$base" ]] || return 1
  { git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard; } |
    while read -r file; do
      case "$file" in
        *.cc) echo "$file" ;;
        *.h) [[ ! -f "${file%.h}.cc" ]] || echo "${file%.h}.cc" ;;
      esac
    done | sort -u
}

if [[ $all == 1 ]]; then
  mapfile -t files < <(find autotune cmd configs discovery launcher runtime test timeline -name '*.cc' | sort)
else
  changed="$(changed_files)" || leave_out "no git branch main here to compare with: use --all"
  mapfile -t files < <(printf '%s' "$changed" | grep -v '^$')
fi
[[ ${#files[@]} != 0 ]] || leave_out "no C++ file is changed"

# The commands as clang takes them: without the options that only GCC has, and without its precompiled headers; and one for
# each of the files that the build compiles as one.
commands="$(mktemp -d)"
trap 'rm -rf "$commands"' EXIT
sed -E 's/ (-mmemset-strategy=[^ ]+|-Wshadow=local|-Werror|-Winvalid-pch|-fpch-preprocess)//g; s/ -include [^ ]*cmake_pch[^ ]+//g' \
  build/compile_commands.json | python3 -c '
import json, re, sys
commands = []
for command in json.load(sys.stdin):
    if "/Unity/unity_" in command["file"]:
        with open(command["file"], encoding="utf-8") as unity:
            files = re.findall(r"^#include \"(.*)\"$", unity.read(), re.MULTILINE)
    else:
        files = [command["file"]]
    commands += [{**command, "file": file, "command": command["command"].replace(command["file"], file)} for file in files]
json.dump(commands, sys.stdout, indent=1)
' >"$commands/compile_commands.json"

known=()
for file in "${files[@]}"; do
  if grep -qsE 'co_await|asio::awaitable' "$file" "${file%.cc}.h"; then
    say "left out, since clang 14 knows no coroutines of libstdc++: $file"
  elif grep -qF "\"$HVD_ROOT/$file\"" "$commands/compile_commands.json"; then
    known+=("$file")
  else
    say "left out, since the release build does not compile it: $file"
  fi
done
[[ ${#known[@]} != 0 ]] || leave_out "none of the ${#files[@]} files is part of the release build"
say "clang-tidy on ${#known[@]} files ..."
printf '%s\0' "${known[@]}" |
  xargs --null -P "$(nproc)" -n 1 clang-tidy -p "$commands" --quiet --warnings-as-errors='*' 2> >(
    grep -vE '^[0-9]+ warnings?( treated as errors| and [0-9]+ errors?)? generated' >&2
  )
