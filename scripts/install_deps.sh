#!/usr/bin/env bash
# Installs what building and testing need, from Debian. Does nothing when all of it is there.
#   --product      only what building hvdrun and running the examples need
#   --pypi-torch   also makes a virtual environment with the newest PyTorch from PyPI (HVD_TORCH_VENV names its folder)
#   --pypi-tensorflow [VERSION]  makes one with TensorFlow from PyPI (HVD_TENSORFLOW_VENV names its folder): the newest with Keras 3 and
#                  tf-keras, or that version, in a folder whose name ends in it
#   --pypi-jax [VERSION]  makes one with JAX and optax from PyPI (HVD_JAX_VENV names its folder): the newest that the newest Python here takes, or
#                  that version, in a folder whose name ends in it
#   --pypi-jupyter makes one with a kernel of Jupyter (HVD_JUPYTER_VENV names its folder)
#   --pypi-mxnet   makes one with MXNet 1.9.1 (HVD_MXNET_VENV names its folder)
#   --pypi-tools   makes one with what checks the Python types, the documentation and the licences (HVD_TOOLS_VENV names its folder)
#   --pypi-packaging  also installs what makes packages and machines to try them on, and makes an environment with uv and with what makes a conda
#                  package and lints the Dockerfile (HVD_PACKAGING_VENV names its folder)
#   --sanitizers   also what the builds asan and tsan need (clang 19)
#   --cross        only what wheels for aarch64 and tests of them need beside that on x86-64: a cross compiler, and QEMU, which emulates it
source "$(dirname "$0")/common.sh"

PRODUCT_PACKAGES=(
  build-essential cmake ninja-build
  libcli11-dev libspdlog-dev libfmt-dev libasio-dev libyaml-cpp-dev nlohmann-json3-dev libeigen3-dev libgloo-dev libssl-dev
  libssh2-1-dev zlib1g-dev
  python3 python3-venv python3-torch python3-sklearn
)
TEST_PACKAGES=(
  ccache
  libgtest-dev libgmock-dev
  libopenmpi-dev openmpi-bin mpich
  python3-pytest python3-pytest-xdist python3-mpi4py python3-cloudpickle
  openssh-server openssh-client iproute2 nftables
  slurmd slurmctld slurm-client munge
  abigail-tools pkgconf shellcheck spin clang-format clang-tidy
)
PACKAGES=("${PRODUCT_PACKAGES[@]}" "${TEST_PACKAGES[@]}")
PACKAGING_PACKAGES=(rpm zstd unzip mmdebstrap iproute2)  # rpm makes and unpacks RPMs; unzip and zstd are for those of conda
CROSS_PACKAGES=(g++-aarch64-linux-gnu qemu-user qemu-user-static mmdebstrap arch-test)
SANITIZER_PACKAGES=(clang-19 libclang-rt-19-dev lld-19 llvm-19)
VENV_PACKAGES=(torch numpy scikit-learn pytest pytest-xdist py-spy expecttest)  # py-spy reads stacks, expecttest is for PyTorch's own tests
VENV_GIB=12
TORCH_VENV="${HVD_TORCH_VENV:-$HOME/.cache/hvdrun/torch-venv}"
TENSORFLOW_PACKAGES=(scikit-learn cloudpickle pytest pytest-xdist)
TENSORFLOW_GIB=4
TENSORFLOW_VENV="${HVD_TENSORFLOW_VENV:-$HOME/.cache/hvdrun/tf-venv}"
JAX_PACKAGES=(optax cloudpickle scikit-learn pytest pytest-xdist)
JAX_GIB=2
JAX_VENV="${HVD_JAX_VENV:-$HOME/.cache/hvdrun/jax-venv}"
MXNET_PACKAGES=(mxnet==1.9.1 numpy==1.23.5 "scikit-learn<1.4" cloudpickle pytest pytest-xdist)
MXNET_GIB=2
JUPYTER_PACKAGES=(ipykernel jupyter_client cloudpickle numpy pytest pytest-xdist)
JUPYTER_VENV="${HVD_JUPYTER_VENV:-$HOME/.cache/hvdrun/jupyter-venv}"
MXNET_VENV="${HVD_MXNET_VENV:-$HOME/.cache/hvdrun/mxnet-venv}"

TOOLS_VENV="${HVD_TOOLS_VENV:-$HOME/.cache/hvdrun/tools-venv}"
PACKAGING_VENV="${HVD_PACKAGING_VENV:-$HOME/.cache/hvdrun/packaging-venv}"

missing_packages() {
  local package
  for package in "${PACKAGES[@]}"; do
    [[ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" == "install ok installed" ]] || echo "$package"
  done
}

install_debian() {
  local missing run=()
  mapfile -t missing < <(missing_packages)
  if [[ ${#missing[@]} == 0 ]]; then
    say "all ${#PACKAGES[@]} packages are installed"
    return
  fi
  if [[ $EUID != 0 ]]; then
    if ! sudo -n true 2>/dev/null && ! { [[ -t 0 ]] && command -v sudo >/dev/null; }; then
      say "these packages are missing and this user may not install them; as root, run:"
      echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
      exit 1
    fi
    run=(sudo)
  fi
  step "reading the package lists" "${run[@]}" apt-get update -q
  step "installing ${missing[*]}" "${run[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

free_gib() {
  local folder="$1"
  while [[ ! -d "$folder" ]]; do folder="$(dirname "$folder")"; done
  df -BG --output=avail "$folder" | tail -n 1 | tr -dc 0-9
}

# The newest Python of this machine that makes virtual environments, also one of pyenv.
newest_python() {
  local minor python
  for minor in 14 13 12 11 10; do
    for python in "/usr/bin/python3.$minor" "/usr/local/bin/python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
      if [[ -x "$python" ]] && "$python" -c 'import ensurepip, ssl' 2>/dev/null; then
        echo "$python"
        return
      fi
    done
  done
  echo /usr/bin/python3
}

# install_venv FOLDER GIB PYTHON "modules" package...: makes it, unless the modules are in it.
install_venv() {
  local folder="$1" gib="$2" python="$3" modules="$4" free
  shift 4
  # shellcheck disable=SC2086
  if "$folder/bin/python" -c 'import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in sys.argv[1:]))' $modules 2>/dev/null; then
    say "$1 is in $folder"
    return
  fi
  free="$(free_gib "$folder")"
  if ((free < gib)); then
    say "$1 from PyPI is left out: it needs $gib GiB and $folder has $free GiB free"
    exit 3
  fi
  mkdir -p "$(dirname "$folder")"
  step "making $folder" "$python" -m venv --clear "$folder"
  step "installing $* from PyPI (a minute or two)" "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

install_tensorflow() {
  local modules="tensorflow sklearn pytest xdist"
  if [[ -z "$1" ]]; then
    install_venv "$TENSORFLOW_VENV" "$TENSORFLOW_GIB" python3 "$modules tf_keras" tensorflow-cpu tf-keras "${TENSORFLOW_PACKAGES[@]}"
  else
    install_venv "$TENSORFLOW_VENV-$1" "$TENSORFLOW_GIB" /usr/bin/python3 "$modules" "tensorflow-cpu==$1" "${TENSORFLOW_PACKAGES[@]}"
  fi
}

install_jax() {
  local modules="jax optax sklearn pytest xdist"
  if [[ -z "$1" ]]; then
    install_venv "$JAX_VENV" "$JAX_GIB" "$(newest_python)" "$modules" jax "${JAX_PACKAGES[@]}"
  else
    install_venv "$JAX_VENV-$1" "$JAX_GIB" /usr/bin/python3 "$modules" "jax==$1" "jaxlib==$1" "numpy<2.3" "${JAX_PACKAGES[@]}"
  fi
}

# install_pinned FOLDER FILE PYTHON: makes it with what the file lists, unless it is there.
install_pinned() {
  local folder="$1" wanted="$2" python="$3" kept
  kept="$folder/$(basename "$wanted")"
  if cmp -s "$wanted" "$kept"; then
    say "the tools of $wanted are in $folder"
    return
  fi
  mkdir -p "$(dirname "$folder")"
  step "making $folder" "$python" -m venv --clear "$folder"
  step "installing the tools of $wanted from PyPI" "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$kept"
}

install_torch() {
  if [[ -x "$TORCH_VENV/bin/py-spy" ]] && "$TORCH_VENV/bin/python" -c 'import torch, numpy, sklearn, pytest, xdist, expecttest' 2>/dev/null; then
    say "PyTorch $("$TORCH_VENV/bin/python" -c 'import torch; print(torch.__version__)') is in $TORCH_VENV"
    return
  fi
  local free
  free="$(free_gib "$TORCH_VENV")"
  if ((free < VENV_GIB)); then
    say "PyTorch from PyPI is left out: it needs $VENV_GIB GiB and $TORCH_VENV has $free GiB free"
    exit 3
  fi
  mkdir -p "$(dirname "$TORCH_VENV")"
  step "making $TORCH_VENV" python3 -m venv "$TORCH_VENV"
  step "installing ${VENV_PACKAGES[*]} from PyPI (some minutes)" \
    "$TORCH_VENV/bin/python" -m pip install --quiet --disable-pip-version-check "${VENV_PACKAGES[@]}"
}

case "${1:-}" in
  "") install_debian ;;
  --product)
    PACKAGES=("${PRODUCT_PACKAGES[@]}")
    install_debian
    ;;
  --pypi-tensorflow) install_tensorflow "${2:-}" ;;
  --pypi-jax) install_jax "${2:-}" ;;
  --pypi-tools) install_pinned "$TOOLS_VENV" scripts/tools.txt "$(newest_python)" ;;
  --pypi-packaging)
    PACKAGES=("${PRODUCT_PACKAGES[@]}" "${PACKAGING_PACKAGES[@]}")
    install_debian
    install_pinned "$PACKAGING_VENV" test/packages/requirements.txt /usr/bin/python3
    ;;
  --pypi-jupyter) install_venv "$JUPYTER_VENV" 1 /usr/bin/python3 "ipykernel jupyter_client cloudpickle xdist" "${JUPYTER_PACKAGES[@]}" ;;
  --pypi-mxnet) install_venv "$MXNET_VENV" "$MXNET_GIB" /usr/bin/python3 "mxnet sklearn pytest xdist" "${MXNET_PACKAGES[@]}" ;;
  --pypi-torch)
    install_debian
    install_torch
    ;;
  --sanitizers)
    PACKAGES+=("${SANITIZER_PACKAGES[@]}")
    install_debian
    ;;
  --cross)
    PACKAGES=("${CROSS_PACKAGES[@]}")
    install_debian
    ;;
  *)
    say "unknown option '$1': --product, --pypi-torch, --pypi-tensorflow, --pypi-jax, --pypi-jupyter, --pypi-mxnet, --pypi-tools, --pypi-packaging, --sanitizers or --cross"
    exit 2
    ;;
esac
