#!/usr/bin/env bash
# build.sh [release|ci|product|debug|asan|tsan]: configures and builds one preset. Warnings are errors, but in `product`,
# which is `release` without tests and benchmarks, for those who only run it, and of clang, which makes asan, with the fuzzers, and tsan.
# HVD_SOAK=1: `tsan` has the tests of launcher and GPUs, too.
# `ci` is `release` without the unit tests, which `asan` runs, compiled several files at a time.
source "$(dirname "$0")/common.sh"
# Objects are the same in every checkout and build folder, so a second one costs little where there is a ccache.
export CCACHE_BASEDIR="$HVD_ROOT" CCACHE_NOHASHDIR=1
preset="${1:-release}"
case "$preset" in
  release | ci | product | debug | asan | tsan) ;;
  *) say "unknown preset '$preset': release, ci, product, debug, asan or tsan" && exit 2 ;;
esac
werror=ON
case "$preset" in product | asan | tsan) werror=OFF ;; esac  # clang warns of other things than g++
options=(-DHVD_WERROR="$werror")
tsan_all=ON
[[ "${HVD_SOAK:-0}" != 0 ]] || tsan_all=OFF
[[ "$preset" != tsan ]] || options+=(-DHVD_TSAN_ALL="$tsan_all")
[[ -z "${HVD_WITH_CUDA:-}" ]] || options+=(-DHVD_WITH_CUDA="$HVD_WITH_CUDA")  # product leaves CUDA out unless it is asked for
step "configuring $preset" cmake --preset "$preset" "${options[@]}"
progress_step "building $preset" cmake --build --preset "$preset"
