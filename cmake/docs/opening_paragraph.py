#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Doxygen's filter for headers: the opening paragraph, a plain comment behind the SPDX line, becomes the documentation of the file."""
import re
import sys

lines = open(sys.argv[1]).read().split("\n")
at = next((i for i, line in enumerate(lines) if "SPDX-License-Identifier" in line), None)
if at is not None:
    begin = at + 1
    while begin < len(lines) and not lines[begin].strip():
        begin += 1
    end = begin
    while end < len(lines) and lines[end].startswith("//") and not lines[end].startswith("///"):
        # Angle brackets and the like are text here, not commands of Doxygen.
        lines[end] = "///" + re.sub(r"([<>@\\&])", r"\\\1", lines[end][2:])
        end += 1
    if end > begin:
        lines[begin] = "/// \\file\n" + lines[begin] if not lines[begin].strip("/ ").startswith("\\file") else lines[begin]
print("\n".join(lines), end="")
