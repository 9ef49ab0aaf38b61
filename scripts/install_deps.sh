#!/usr/bin/env bash
# Installs what building and testing need, from Debian. Does nothing when all of it is there.
#   --product      only what building hvdrun and running the examples need
#   --pypi-torch   also makes a virtual environment with the newest PyTorch from PyPI (HVD_TORCH_VENV names its folder)
#   --pypi-tensorflow  makes one with the newest TensorFlow, Keras 3 and tf-keras from PyPI (HVD_TENSORFLOW_VENV names its folder)
#   --sanitizers   also what the builds asan and tsan need (clang 19)
source "$(dirname "$0")/common.sh"

PRODUCT_PACKAGES=(
  build-essential cmake ninja-build
  libcli11-dev libspdlog-dev libfmt-dev libasio-dev libyaml-cpp-dev nlohmann-json3-dev libeigen3-dev libgloo-dev libssl-dev
  libssh2-1-dev zlib1g-dev
  python3 python3-torch python3-sklearn
)
TEST_PACKAGES=(
  ccache
  libgtest-dev libgmock-dev
  libopenmpi-dev openmpi-bin mpich
  python3-venv python3-pytest python3-pytest-xdist python3-mpi4py python3-cloudpickle
  openssh-server openssh-client iproute2 nftables
  slurmd slurmctld slurm-client munge
  shellcheck spin clang-format clang-tidy
)
PACKAGES=("${PRODUCT_PACKAGES[@]}" "${TEST_PACKAGES[@]}")
SANITIZER_PACKAGES=(clang-19 libclang-rt-19-dev llvm-19)
VENV_PACKAGES=(torch numpy scikit-learn pytest pytest-xdist)
VENV_GIB=12
TORCH_VENV="${HVD_TORCH_VENV:-$HOME/.cache/hvdrun/torch-venv}"
TENSORFLOW_PACKAGES=(tensorflow-cpu tf-keras scikit-learn cloudpickle pytest pytest-xdist)
TENSORFLOW_GIB=4
TENSORFLOW_VENV="${HVD_TENSORFLOW_VENV:-$HOME/.cache/hvdrun/tf-venv}"

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

install_tensorflow() {
  # Without importing it, which takes seconds.
  if "$TENSORFLOW_VENV/bin/python" -c 'import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in ("tensorflow", "tf_keras", "sklearn", "pytest", "xdist")))' 2>/dev/null; then
    say "TensorFlow is in $TENSORFLOW_VENV"
    return
  fi
  local free
  free="$(free_gib "$TENSORFLOW_VENV")"
  if ((free < TENSORFLOW_GIB)); then
    say "TensorFlow from PyPI is left out: it needs $TENSORFLOW_GIB GiB and $TENSORFLOW_VENV has $free GiB free"
    exit 3
  fi
  mkdir -p "$(dirname "$TENSORFLOW_VENV")"
  step "making $TENSORFLOW_VENV" python3 -m venv "$TENSORFLOW_VENV"
  step "installing ${TENSORFLOW_PACKAGES[*]} from PyPI (a minute or two)" \
    "$TENSORFLOW_VENV/bin/python" -m pip install --quiet --disable-pip-version-check "${TENSORFLOW_PACKAGES[@]}"
}

install_torch() {
  if "$TORCH_VENV/bin/python" -c 'import torch, numpy, sklearn, pytest, xdist' 2>/dev/null; then
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
  --pypi-tensorflow) install_tensorflow ;;
  --pypi-torch)
    install_debian
    install_torch
    ;;
  --sanitizers)
    PACKAGES+=("${SANITIZER_PACKAGES[@]}")
    install_debian
    ;;
  *) say "unknown option '$1': --product, --pypi-torch, --pypi-tensorflow or --sanitizers" && exit 2 ;;
esac
