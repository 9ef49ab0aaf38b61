#!/usr/bin/env bash
# On x86-64 as root: makes the wheel for aarch64 and the tests for it, and runs them under QEMU's emulation: the unit and contract tests, then
# the wheel in a Debian of that processor (test/aarch64). Half an hour on two processors; docs/decisions/aarch64.md says what it proves.
source "$(dirname "$0")/common.sh"
scripts/install_deps.sh --cross
scripts/build_wheel.sh --arch aarch64
scripts/build_wheel.sh --arch aarch64 --tests
step "unit and contract tests for aarch64, emulated" ctest --test-dir build-aarch64 -L 'unit|contract' -j "$(nproc)" --output-on-failure
/usr/bin/python3 -m pytest -q -p no:cacheprovider test/aarch64
