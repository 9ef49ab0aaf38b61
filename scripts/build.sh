#!/usr/bin/env bash
# build.sh [PRESET]: configures and builds one preset, and treats warnings of g++ as errors where it is the version that CI has;
# a newer one warns of other things.
#   release   with all tests and benchmarks; the default
#   ci        release without the unit tests, which asan runs
#   product   release without tests and benchmarks, for those who only run it
#   debug     for debuggers
#   alone     each file by itself, without precompiled headers, in build-alone/: a file that does not include what it uses
#             fails; clangd reads its compile_commands.json
#   asan      the tests under AddressSanitizer, and the fuzzers; by clang
#   tsan      those with threads under ThreadSanitizer; HVD_SOAK=1: those of launcher and GPUs, too; by clang
source "$(dirname "$0")/common.sh"
# Objects are the same in every checkout and build folder, so a second one costs little where there is a ccache.
export CCACHE_BASEDIR="$HVD_ROOT" CCACHE_NOHASHDIR=1
preset="${1:-release}"
case "$preset" in
  release | ci | product | debug | alone | asan | tsan) ;;
  *) say "unknown preset '$preset': release, ci, product, debug, alone, asan or tsan" && exit 2 ;;
esac
werror="$(warnings_are_errors)"
case "$preset" in
  asan | tsan)
    werror=OFF  # clang warns of other things than g++
    command -v clang++-19 >/dev/null || { say "clang++-19 is not installed: run scripts/install_deps.sh --sanitizers" && exit 1; }
    ;;
esac
options=(-DHVD_WERROR="$werror")
tsan_all=ON
[[ "${HVD_SOAK:-0}" != 0 ]] || tsan_all=OFF
[[ "$preset" != tsan ]] || options+=(-DHVD_TSAN_ALL="$tsan_all")
[[ -z "${HVD_WITH_CUDA:-}" ]] || options+=(-DHVD_WITH_CUDA="$HVD_WITH_CUDA")  # product leaves CUDA out unless it is asked for
step "configuring $preset" cmake --preset "$preset" "${options[@]}"
progress_step "building $preset" cmake --build --preset "$preset"
