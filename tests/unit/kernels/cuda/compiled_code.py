#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compiled_code.py <library.a> <code>: each object with kernels has exactly the code that the program says, as "90a 80+" (the + is PTX).

cuobjdump lists the same, where a toolkit has it. In the section .nv_fatbin a container (magic, version, its header's size, size of what follows) holds
entries: kind (1 PTX, 2 machine code), version, size of the header, size of the data, and 28 bytes from its beginning the compute capability."""
import pathlib
import struct
import subprocess
import sys
import tempfile


def entries(section):
    found, at = set(), 0
    while at + 16 <= len(section):
        magic, _, header, size = struct.unpack_from("<IHHQ", section, at)
        if magic != 0xBA55ED50:  # padding between containers
            at += 8
            continue
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, entry_header, data = struct.unpack_from("<HHIQ", section, entry)
            capability = struct.unpack_from("<I", section, entry + 28)[0]
            found.add(f"{capability}{'+' if kind == 1 else ''}")
            entry += entry_header + data
        at = end
    return found


def main(library, code):
    expected = {one.rstrip("af") if not one.endswith("+") else one for one in code.split()}
    looked_at, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["ar", "x", pathlib.Path(library).resolve()], cwd=folder, check=True)
        for member in sorted(pathlib.Path(folder).iterdir()):
            section = pathlib.Path(folder, "section")
            subprocess.run(["objcopy", "-O", "binary", "--only-section=.nv_fatbin", "--set-section-flags", ".nv_fatbin=alloc", member, section], check=False,
                           stderr=subprocess.DEVNULL)
            found = entries(section.read_bytes()) if section.exists() else set()
            section.unlink(missing_ok=True)
            if found:
                looked_at += 1
                if found != expected:
                    wrong.append(f"{member.name}: {sorted(found)}")
    print(f"{looked_at} objects with kernels, expected in each: {sorted(expected)}")
    print("\n".join(wrong))
    return 0 if looked_at > 0 and not wrong else 1


sys.exit(main(*sys.argv[1:]))
