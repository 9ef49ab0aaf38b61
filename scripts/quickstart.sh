#!/usr/bin/env bash
# From a bare clone to a trained model: installs, builds (no tests), then trains on two processes.
source "$(dirname "$0")/common.sh"
scripts/install_deps.sh --product
scripts/build.sh product
say "training on two processes: build/bin/hvdrun -np 2 /usr/bin/python3 examples/pytorch_digits.py"
start=$SECONDS
build/bin/hvdrun -np 2 /usr/bin/python3 examples/pytorch_digits.py "$@"
say "trained in $((SECONDS - start)) s"
