#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links the readers with the files that they need, and no others: those that define a symbol which is still undefined, until none is.

The objects of a finished build show which file defines what, so no list has to be kept.
  build_readers.py link OBJECTS OUT OBJECT... -- COMMAND...        links objects of that build: fails when a reader needs MPI or BLAS
  build_readers.py compile OBJECTS OUT SOURCE... -- COMPILER FLAGS...  compiles the files again with this compiler, in OUT's folder, and links
OBJECTS names a file with the objects of that build, one a line, after its build folder and source folder.
"""
import os
import pathlib
import subprocess
import sys

LIBRARIES = ("-lfmt", "-lpcre2-8", "-lutf8proc")


def symbols(objects, which):
    """{symbol: object}; of several definitions a strong one. A reference that may stay undefined is none."""
    if not objects:
        return {}
    text = subprocess.run(["nm", "-A", "-P", "-g", which, *map(str, objects)], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in text.splitlines():
        place, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        if kind not in "wv" and not (kind in "WVu" and name in found):
            found[name] = place
    return found


class Build:
    def __init__(self, listing):
        self.folder, self.source, *objects = pathlib.Path(listing).read_text().split("\n")
        self.definitions = symbols([o for o in objects if o], "--defined-only")

    def source_of(self, built):
        """<folder>/a/CMakeFiles/<target>.dir/b.cpp.o is made of a/b.cpp of the sources, or of a/b.cpp of the build, which was generated."""
        place, rest = str(pathlib.Path(built).relative_to(self.folder)).split("CMakeFiles/", 1)
        name = place + rest.split(".dir/", 1)[1].removesuffix(".o")
        in_source = pathlib.Path(self.source) / name
        return in_source if in_source.exists() else pathlib.Path(self.folder) / name

    def needed(self, mine):
        """Objects of the build that define what these objects leave undefined."""
        own = symbols(mine, "--defined-only")
        return {self.definitions[s] for s in symbols(mine, "--undefined-only") if s not in own and s in self.definitions}


def link(build, out, objects, command):
    objects = list(objects)
    while more := build.needed(objects) - set(objects):
        objects += sorted(more)
    return subprocess.run([*command, *objects, *LIBRARIES, "-o", out]).returncode


def compile_and_link(build, out, sources, command):
    folder = pathlib.Path(out).parent
    sources = [pathlib.Path(s) for s in sources]
    flags = " ".join(f"'{word}'" for word in command)
    ninja = ["ninja", "--quiet", "-j", str(len(os.sched_getaffinity(0))), "-C", folder]
    while True:
        objects = ["_".join(s.parts[-3:]).removesuffix(".cpp") + ".o" for s in sources]
        text = [f"rule compile\n  command = {flags} -MMD -MF $out.d -c $in -o $out\n  depfile = $out.d\n  deps = gcc",
                f"rule link\n  command = {flags} $in {' '.join(LIBRARIES)} -o $out"]
        text += [f"build {o}: compile {s}" for o, s in zip(objects, sources)]
        text += [f"build objects: phony {' '.join(objects)}", f"build {out}: link {' '.join(objects)}", ""]
        (folder / "build.ninja").write_text("\n".join(text))
        if code := subprocess.run([*ninja, "objects"]).returncode:
            return code
        more = {build.source_of(o) for o in build.needed([folder / o for o in objects])} - set(sources)
        if not more:
            return subprocess.run([*ninja, out]).returncode
        sources += sorted(more)


def main():
    end = sys.argv.index("--")
    way, listing, out, *files = sys.argv[1:end]
    return {"link": link, "compile": compile_and_link}[way](Build(listing), out, files, sys.argv[end + 1:])


if __name__ == "__main__":
    sys.exit(main())
