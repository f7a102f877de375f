# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that are shell scripts; they end with: exit $((failures > 0))
failures=0
expect() { # expect <what> <wanted> <got>
  if [[ $2 != "$3" ]]; then echo "FAILED: $1: expected '$2', got '$3'"; failures=$((failures + 1)); else echo "ok: $1"; fi
}
