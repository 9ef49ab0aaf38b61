#!/usr/bin/env bash
# build_wheel.sh [--sdist] [--arch ARCH [--tests]] [FOLDER]: makes the wheel for all Linux on ARCH (x86_64 or aarch64; default: this machine's)
# with glibc 2.28 or newer, FOLDER/hvdrun-*-manylinux_2_28_ARCH.whl (default: dist/), and checks it; and hvdrun-*-py3-none-any.whl, the one without
# a runtime, for other systems. On Debian 12, with what scripts/install_deps.sh installs, and nvcc for GPUs (HVD_WITH_CUDA=OFF: without them); what
# else it needs it builds once, from pinned sources, below ~/.cache/hvdrun/wheel (HVD_WHEEL_CACHE); it ends with 3 where neither Debian nor its
# snapshot has one of them. packaging/wheel/README.md says how.
source "$(dirname "$0")/common.sh"
GLIBC=2.28
PYTHON=/usr/bin/python3
CACHE="${HVD_WHEEL_CACHE:-$HOME/.cache/hvdrun/wheel}"
HERE=packaging/wheel
ARCH="$(uname -m)"
sdist=no
[[ "${1:-}" != --sdist ]] || { sdist=yes && shift; }
[[ "${1:-}" != --arch ]] || { ARCH="${2:-}" && shift 2; }
only_tests=no
[[ "${1:-}" != --tests ]] || { only_tests=yes && shift; }
out="$(realpath -m "${1:-dist}")"
# shellcheck source=../packaging/wheel/target.sh
source "$HERE/target.sh"
PLATFORM="manylinux_${GLIBC/./_}_$ARCH"

# cached NAME FILE...: the folder of what these files and the compiler make.
cached() {
  local name="$1"
  shift
  echo "$CACHE/$name-$({ cat "$@" && "${TOOL_PREFIX}g++" -dumpfullversion; } | sha256sum | cut -c1-16)"
}

# once FOLDER "words" command...: unless the folder is there.
once() {
  local folder="$1"
  shift
  [[ -e "$folder/complete" ]] || { mkdir -p "$CACHE" && step "$@" && touch "$folder/complete"; }
}

install_tools() {
  rm -rf "$tools"
  "$PYTHON" -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r "$HERE/requirements.txt"
}

licenses_of_headers() {
  local package
  for package in libcli11-dev libspdlog-dev libfmt-dev libasio-dev nlohmann-json3-dev libeigen3-dev; do
    mkdir -p "$third/licenses/$package"
    cp "/usr/share/doc/$package/copyright" "$third/licenses/$package/"
  done
}

# The compiler cache has nearly every object of the same compiler, by name, and flags: those of scripts/build.sh, where it ran. So
# headers are this machine's, too, where they fit the library that is linked: C libraries keep to one interface for years, and
# yaml-cpp is of the same version. Gloo's are its own. This machine's libmpi.so, which CMake tries, needs a newer glibc itself.
# For another processor nothing of this machine is looked at: third_parties.sh has put all into one folder.
definitions() {
  local name
  if [[ ${#CROSS[@]} == 0 ]]; then
    for name in YAML OPENSSL LIBSSH2; do echo "HVD_${name}_INCLUDE=/usr/include"; done
  else
    printf '%s\n' "${CROSS[@]#-D}" CMAKE_FIND_ROOT_PATH="$third" MPI_C_LIB_NAMES=mpi MPI_mpi_LIBRARY="$third/lib/libmpi.so" \
      MPI_C_HEADER_DIR="$third/openmpi"
    for name in INCLUDE LIBRARY PACKAGE; do echo "CMAKE_FIND_ROOT_PATH_MODE_$name=ONLY"; done
  fi
  printf '%s\n' CMAKE_PREFIX_PATH="$third" HVD_LICENSES="$third/licenses" HVD_WERROR="${HVD_WHEEL_WERROR:-ON}" HVD_WITH_GLOO=ON \
    CMAKE_EXE_LINKER_FLAGS="-B$stubs -L$stubs -Wl,--gc-sections,--allow-shlib-undefined" \
    CMAKE_SHARED_LINKER_FLAGS="-B$stubs -L$stubs -Wl,--gc-sections" \
    HVD_WITH_MPI="${HVD_WITH_MPI:-AUTO}" HVD_WITH_CUDA="${HVD_WITH_CUDA:-AUTO}"
}

make_wheel() {
  local defined=() cc=cc cxx=c++
  [[ ${#CROSS[@]} == 0 ]] || cc="${TOOL_PREFIX}gcc" cxx="${TOOL_PREFIX}g++"
  mapfile -t defined < <(definitions)
  rm -rf "$work" && mkdir -p "$work"
  env CC="$cc" CXX="$cxx" CCACHE_BASEDIR="$HVD_ROOT" CCACHE_NOHASHDIR=1 PATH="$tools/bin:$PATH" \
    "$tools/bin/python" -m build --wheel --no-isolation --outdir "$work" --config-setting=build-dir="build-wheel${TOOL_PREFIX:+-$ARCH}" \
    "${defined[@]/#/--config-setting=cmake.define.}" . || return
  mkdir -p "$out"
  # The wheel says what its programs need, which check_wheel.py proves.
  "$tools/bin/python" "$HERE/tag_wheel.py" "$work"/hvdrun-*.whl "$PLATFORM" "$out"
}

# For those who cross-compile: the programs of the unit and contract tests, in build-ARCH/. Objects of the product are the wheel's, by the compiler cache.
make_tests() {
  local defined=() names=()
  mapfile -t defined < <(definitions)
  export CC="${TOOL_PREFIX}gcc" CXX="${TOOL_PREFIX}g++" CCACHE_BASEDIR="$HVD_ROOT" CCACHE_NOHASHDIR=1
  cmake -S . -B "build-$ARCH" -G Ninja -DBUILD_TESTING=ON -DHVD_TESTING_FAULTS=ON "${defined[@]/#/-D}" || return
  # One program has several tests, with other numbers of ranks of MPI.
  mapfile -t names < <(ctest --test-dir "build-$ARCH" -N -L 'unit|contract' | sed -n 's/^ *Test *#[0-9]*: //p' | sed 's/^contract_mpi_.*/contract_mpi/' | sort -u)
  cmake --build "build-$ARCH" --target "${names[@]}"
}

make_sdist() { PATH="$tools/bin:$PATH" "$tools/bin/python" -m build --sdist --no-isolation --outdir "$out" .; }

tools="$(cached tools $HERE/requirements.txt)"
stubs="$(cached "glibc-$GLIBC-$ARCH" $HERE/requirements.txt $HERE/target.sh $HERE/glibc_stubs.sh $HERE/glibc_compat.c)"
third="$(cached "third-parties-$ARCH" $HERE/third_parties.txt $HERE/target.sh $HERE/third_parties.sh)"
work="$(realpath -m "build-wheel-$ARCH.out")"
trap 'rm -rf "$work"' EXIT
# A wheel that lacks GPUs looks like one that has them until somebody has one.
[[ "$ARCH" != x86_64 || $only_tests == yes || "${HVD_WITH_CUDA:-AUTO}" == OFF ]] || has_nvcc ||
  { say "there is no nvcc, without which the wheel would have no GPUs: install that of CUDA 12.1 or newer, or say HVD_WITH_CUDA=OFF" && exit 1; }
upstream() { sed 's/^[0-9]*://; s/[+-].*//'; }
[[ "$(dpkg-query -W -f='${Version}' libyaml-cpp-dev | upstream)" == "$(awk '$1 == "yaml-cpp" { print $2 }' $HERE/third_parties.txt | upstream)" ]] ||
  { say "libyaml-cpp-dev is missing (scripts/install_deps.sh installs it) or not of the version in $HERE/third_parties.txt" && exit 1; }
once "$tools" "installing the tools of $HERE/requirements.txt" install_tools
once "$stubs" "making what programs for glibc $GLIBC are linked against" $HERE/glibc_stubs.sh "$tools/bin/python" "$stubs" "$GLIBC" "$ARCH"
[[ -e "$third/complete" ]] || { HVD_WHEEL_ARCH="$ARCH" $HERE/third_parties.sh "$third" && licenses_of_headers && touch "$third/complete"; } || exit
[[ $only_tests == no ]] || { progress_step "building the tests for $ARCH" make_tests && exit; }
[[ $sdist == no ]] || step "making the source archive" make_sdist
progress_step "building the wheel" make_wheel
step "making the wheel without a runtime" "$PYTHON" $HERE/pure_wheel.py "$out"
step "checking it" "$tools/bin/python" $HERE/check_wheel.py "$PLATFORM" "$out"/hvdrun-*-"$PLATFORM".whl
ls -l "$out"
