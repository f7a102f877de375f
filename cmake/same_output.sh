#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# same_output.sh <expected file> <command...>: the command ends with 0 and prints exactly what the file holds.
set -u -o pipefail
expected=$1
shift
"$@" | diff "$expected" -
