#!/usr/bin/env bash
# On x86-64 as root: makes the wheel for aarch64 and the tests for it, and runs them in a Debian of that processor which QEMU emulates: the
# programs of the unit and contract tests, then the wheel (test/aarch64). docs/decisions/aarch64.md says how long it takes and what it proves.
# What was built stays in build-aarch64 and in the compiler cache: interrupted, it goes on from there.
source "$(dirname "$0")/common.sh"
scripts/install_deps.sh --cross
scripts/build_wheel.sh --arch aarch64
scripts/build_wheel.sh --arch aarch64 --tests
/usr/bin/python3 -m pytest -q -p no:cacheprovider test/aarch64
