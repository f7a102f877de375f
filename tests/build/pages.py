#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what README.md and the pages in docs/ say is true.

  pages.py text ROOT                            links, anchors, quoted files, config keys, CMake options, length of the README
  pages.py commands ROOT --rheo PROGRAM         commands: `console` blocks are run and compared, options in `sh` blocks exist,
                                                `toml` blocks are accepted, pictures are drawn
  pages.py compile ROOT --compiler CXX --work FOLDER [FLAGS...]   `cpp` blocks and the numbered examples compile without a warning

A line `...` in a console block stands for any lines. A block with title="FILE" is an excerpt of that file.
Each mistake is one line: page, line, what is wrong.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

MOST_LINES_OF_README = 120
FILES = {".hpp", ".cpp", ".md", ".json", ".csv", ".sh", ".safetensors", ".sbatch"}


class Block:
    def __init__(self, page, line, info, text):
        self.page, self.line, self.info, self.text = page, line, info, text
        self.kind = info.split()[0] if info.split() else ""
        title = re.search(r'title="([^"]+)"', info)
        self.title = title.group(1) if title else None


class Page:
    def __init__(self, path):
        self.path = path
        self.text = path.read_text()
        self.blocks, prose, fence = [], [], None
        for number, line in enumerate(self.text.split("\n"), 1):
            if fence is None and line.startswith("```"):
                fence = (number, line[3:].strip(), [])
                prose.append("")
            elif fence is not None and line.startswith("```"):
                self.blocks.append(Block(self, fence[0], fence[1], "\n".join(fence[2])))
                fence = None
                prose.append("")
            elif fence is not None:
                fence[2].append(line)
                prose.append("")
            else:
                prose.append(line)
        self.prose = prose  # line by line, code blocks left out

    def anchors(self):
        """As Python-Markdown makes them, and GitHub for headings that occur once."""
        found = set()
        for line in self.prose:
            heading = re.match(r"#+ +(.*)", line)
            if heading:
                plain = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading.group(1))
                slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
                while slug in found:
                    slug += "_"
                found.add(slug)
        return found


def pages_of(root):
    fixed = [root / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "bench/README.md", "kernels/cuda/README.md")]
    return {p: Page(p) for p in fixed + sorted((root / "docs").rglob("*.md"))}


def outside_of_code(line):
    return re.sub(r"`[^`]*`", "``", line)


def check_text(root, complain):
    pages = pages_of(root)
    for page in pages.values():
        for number, line in enumerate(page.prose, 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", outside_of_code(line)):
                if re.match(r"[a-z]+:", target) or target.startswith("../api/"):  # the API is made by Doxygen
                    continue
                name, _, anchor = target.partition("#")
                there = (page.path.parent / name).resolve() if name else page.path
                if not there.exists():
                    complain(page, number, f"links to {target}, which does not exist")
                elif anchor and there.suffix == ".md" and anchor not in (pages.get(there) or Page(there)).anchors():
                    complain(page, number, f"links to {target}, but {there.name} has no heading of that name")
        for block in page.blocks:
            if block.title and block.text not in (root / block.title).read_text():
                complain(page, block.line, f"quotes {block.title}, which no longer has these lines")

    keys = set(re.findall(r"^\| `([a-z0-9_.]+)`", (root / "docs/reference/config.md").read_text(), re.M))
    tables = "|".join({key.split(".")[0] for key in keys})
    variables = (root / "CMakeLists.txt").read_text() + "".join(p.read_text(errors="replace") for folder in ("tests", "cmake", "examples", "kernels") for p in (root / folder).rglob("*") if p.is_file() and p.stat().st_size < 1 << 20)
    for page in pages.values():
        if page.path.name == "CHANGELOG.md":  # it names what was there at the time
            continue
        for number, line in enumerate(page.prose, 1):
            for word in re.findall(r"`([^`]+)`", line):
                key = re.fullmatch(rf"((?:{tables})\.[a-z0-9_.]+)(\*?)( = .*)?", word)
                if key and pathlib.Path(key.group(1)).suffix not in FILES:
                    known = any(k.startswith(key.group(1)) for k in keys) if key.group(2) else key.group(1) in keys
                    if not known:
                        complain(page, number, f"names the config key {key.group(1)}, which does not exist")
                if re.fullmatch(r"(bench|cmake|docs|examples|executor|include|kernels|tests)/[\w./-]+", word) and not (root / word).exists():
                    complain(page, number, f"names {word}, which does not exist")
                for name in re.findall(r"\bRHEO_[A-Z_0-9]+", word):
                    if name not in variables:
                        complain(page, number, f"names {name}, which nothing reads")
    workflow = Page(root / ".github/workflows/ci.yml")
    presets = (root / "CMakePresets.json").read_text()
    for number, line in enumerate(workflow.text.split("\n"), 1):
        for script in re.findall(r"cmake .*?-P ([\w./]+)", line):
            if not (root / script).exists():
                complain(workflow, number, f"calls {script}, which does not exist")
        for preset in re.findall(r"(?:--preset |-DPRESET=)([\w-]+)", line):
            if f'"name": "{preset}"' not in presets:
                complain(workflow, number, f"calls the preset {preset}, which does not exist")
    lines = (root / "README.md").read_text().count("\n")
    if lines > MOST_LINES_OF_README:
        complain(pages[root / "README.md"], lines, f"has {lines} lines; {MOST_LINES_OF_README} are enough, details go to docs/")
    return len(pages)


def same_lines(expected, actual):
    """True if the lines are equal, `...` standing for any number of lines."""
    if not expected:
        return not actual
    if expected[0].strip() == "...":
        return any(same_lines(expected[1:], actual[skip:]) for skip in range(len(actual) + 1))
    return bool(actual) and expected[0].rstrip() == actual[0].rstrip() and same_lines(expected[1:], actual[1:])


class Commands:
    def __init__(self, root, rheo, complain):
        self.root, self.rheo, self.complain = root, rheo, complain
        self.environment = dict(os.environ, PATH=f"{pathlib.Path(rheo).parent}:{os.environ['PATH']}")
        self.options = {}
        self.presets = (root / "CMakePresets.json").read_text()
        self.cmake = "".join(p.read_text() for p in root.rglob("CMakeLists.txt") if "build" not in p.relative_to(root).parts[0]) \
            + "".join(p.read_text() for p in (root / "cmake").glob("*.cmake"))
        self.commands = set(re.findall(r"^  ([a-z-]+) ", self.run(["rheo", "--help"]).stdout, re.M))

    def run(self, words):
        return subprocess.run(words, cwd=self.root, env=self.environment, text=True, capture_output=True, timeout=120)

    def options_of(self, command):
        if command not in self.options:
            self.options[command] = set(re.findall(r"--[a-z-]+", self.run(["rheo", command, "--help"]).stdout))
        return self.options[command]

    def console(self, block):
        steps = re.split(r"^\$ ", block.text, flags=re.M)[1:]
        for step in steps:
            command, _, expected = step.partition("\n")
            result = self.run(shlex.split(command))
            output = result.stdout + result.stderr
            if result.returncode != 0:
                self.complain(block.page, block.line, f"{command}: exit code {result.returncode}\n{output}")
            elif not same_lines(expected.rstrip("\n").split("\n"), output.rstrip("\n").split("\n")):
                self.complain(block.page, block.line, f"{command} prints something else:\n{output}")

    def shell(self, block):
        for offset, line in enumerate(block.text.replace("\\\n", " ").split("\n"), 1):
            words = shlex.split(line, comments=True)
            wrong = lambda what: self.complain(block.page, block.line + offset, what)
            if "rheo" in words and words[0] in ("rheo", "mpirun"):
                at = words.index("rheo")
                command = words[at + 1]
                if command not in self.commands:
                    wrong(f"rheo has no command {command}")
                    continue
                for word in words[at + 2:]:
                    if word.startswith("--") and word.split("=")[0] not in self.options_of(command):
                        wrong(f"rheo {command} has no option {word}")
            elif words and words[0] == "cmake":
                for flag, value in zip(words, words[1:]):
                    if flag == "-P" and not (self.root / value).exists():
                        wrong(f"{value} does not exist")
                    if flag == "--preset" and f'"name": "{value}"' not in self.presets:
                        wrong(f"there is no preset {value}")
                    if flag == "--target" and not value.startswith("test_") and not re.search(rf"add_(custom_target|executable)\({value}\b", self.cmake):
                        wrong(f"there is no target {value}")

    def config(self, block):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "job.toml"
            file.write_text(block.text)
            result = self.run(["rheo", "plan", str(file), "--ranks", "4"])
            if result.returncode != 0:
                self.complain(block.page, block.line, f"rheo plan refuses this config: {result.stderr}")

    def cluster(self, block):
        """A described cluster is read before the traces, of which there are none."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "c.toml"
            file.write_text(block.text)
            result = self.run(["rheo", "trace", "import", str(pathlib.Path(folder) / "job"), "--cluster", str(file)])
            if result.returncode != 4 or "no such file; traces are" not in result.stderr:
                self.complain(block.page, block.line, f"rheo trace import refuses this cluster: {result.stderr}")

    def picture(self, page, number, line):
        for command in re.findall(r"<!-- picture: ([^|]*)\|", line):
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "picture.svg"
                words = [str(out) if w == "OUT" else w for w in shlex.split(command)]
                result = self.run(words)
                picture = out.read_text() if out.exists() else result.stdout
                if result.returncode != 0 or not picture.startswith("<svg"):
                    self.complain(page, number, f"{command} draws no picture: {result.stderr}")


def check_commands(root, rheo, complain):
    commands = Commands(root, rheo, complain)
    kinds = {"console": commands.console, "sh": commands.shell}
    seen = 0
    for page in pages_of(root).values():
        for block in page.blocks:
            check = kinds.get(block.kind)
            if block.kind == "toml" and block.text.startswith("schema") and "[pipelines]" not in block.text:  # a grid
                check = commands.cluster if "[[level]]" in block.text else commands.config
            if check:
                seen += 1
                check(block)
        for number, line in enumerate(page.prose, 1):
            commands.picture(page, number, line)
    return seen


def check_compile(root, compiler, work, flags, complain):
    work.mkdir(parents=True, exist_ok=True)
    sources = []
    for page in pages_of(root).values():
        for block in page.blocks:
            if block.kind == "cpp" and not block.title:
                source = work / f"{page.path.stem}_{block.line}.cpp"
                source.write_text(block.text + "\n")
                sources.append((page, block.line, source))
    if not sources:
        sys.exit("no page has a block that begins with ```cpp")
    version = subprocess.run([compiler, "--version"], text=True, capture_output=True).stdout
    for example in sorted((root / "examples").glob("[0-9]*.cpp")):
        # it needs std::string in constant expressions, which libstdc++ 12 does not have for clang
        if not ("clang" in version and example.name.startswith("07_")):
            sources.append((Page(example), 1, example))
    if "clang" in version:
        flags = [*flags, "-fconstexpr-steps=33554432"]  # as many as g++ allows by default
    for page, line, source in sources:
        result = subprocess.run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only",
                                 *flags, str(source)], text=True, capture_output=True)
        if result.returncode != 0:
            complain(page, line, f"{compiler} refuses it:\n{result.stderr}")
    return len(sources)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=("text", "commands", "compile"))
    arguments.add_argument("root", type=pathlib.Path)
    arguments.add_argument("--rheo")
    arguments.add_argument("--compiler")
    arguments.add_argument("--work", type=pathlib.Path)
    given, flags = arguments.parse_known_args()
    root = given.root.resolve()
    mistakes = []

    def complain(page, line, sentence):
        mistakes.append(f"{page.path.relative_to(root)}:{line}: {sentence}")

    if given.what == "text":
        seen = check_text(root, complain)
    elif given.what == "commands":
        seen = check_commands(root, given.rheo, complain)
    else:
        seen = check_compile(root, given.compiler, given.work, flags, complain)
    print("\n".join(mistakes) if mistakes else f"{seen} checked, no mistake")
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
