#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes the code in small ways that each break a law, and expects the named tests to fail.

    mutants.py --source ROOT --check [--build BUILD]              every mutant still applies, every test it names is there
    mutants.py --source ROOT --list
    mutants.py --source ROOT --build BUILD --work WORK [NAME...]  runs all of them, or those whose name contains one of the words

The mutants are in laws/*.txt beside this file. An entry begins with its name; its text must be found exactly once in the file:

    ## a moved accumulator forgets that a contribution overflowed
    law 1b: max and flags belong to the accumulator and move with it
    file executor/state/accumulator_moves.cpp
    test transfer.moves
    -state.overflow ? 1 : 0
    +0

Lines after `-` are the text and lines after `+` what becomes of it, character by character. Every test named must fail, or its static assertions. With a line `compiler SENTENCE`
it is the compiler that must refuse the code of these tests with that sentence; a file in tests/ that only the compiler looks at is named by its path. With a line `lives REASON` the mutant is known to survive: the tests must pass.

Mutants run in a copy of the sources with a build folder of its own, which is kept for the next call. A test must pass there before its mutants count."""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

# What compilers say of a law that a test states as a static_assert: then no test has to run.
STATIC_ASSERTIONS = ("static assertion failed", "non-constant condition for static assertion", "static_assert failed", "is not an integral constant expression")
LAWS = pathlib.Path(__file__).resolve().parent / "laws"


class Mutant:
    def __init__(self, name, where):
        self.name, self.where = name, where
        self.law = self.file = self.compiler = self.lives = ""
        self.tests, self.text, self.becomes = [], [], []

    def complaints(self, source, known_tests):
        for what in ("law", "file", "tests", "text"):
            if not getattr(self, what):
                yield f"it has no {what}"
        if self.text == self.becomes:
            yield "it changes nothing"
        path = source / self.file
        if not self.file or not path.is_file():
            yield f"there is no file '{self.file}'"
            return
        count = path.read_text().count("\n".join(self.text))
        if count != 1:
            yield f"its text is found {count} times in {self.file}, and must be there exactly once: adapt the entry to the code as it is now"
        for test in self.tests:
            if test.endswith(".cpp"):
                if not self.compiler or not (source / test).is_file():
                    yield f"'{test}' is no file, or there is no line `compiler` that says how it must be refused"
            elif known_tests is not None and test not in known_tests:
                yield f"there is no test '{test}'"


def read_mutants():
    mutants = []
    for path in sorted(LAWS.glob("*.txt")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path.name}:{number}"
            word, _, rest = line.partition(" ")
            if word == "##":
                mutants.append(Mutant(rest.strip(), where))
            elif not mutants or line.startswith("# ") or not line.strip():
                continue
            elif line[0] == "-":
                mutants[-1].text.append(line[1:])
            elif line[0] == "+":
                mutants[-1].becomes.append(line[1:])
            elif word == "test":
                mutants[-1].tests += rest.split()
            elif word in ("law", "file", "compiler", "lives"):
                setattr(mutants[-1], word, rest.strip())
            else:
                sys.exit(f"{where}: '{word}' is none of law, file, test, compiler, lives, -, +")
    return mutants


def tests_of(build):
    """Name -> the command of the test, whether it is built already or not."""
    commands = {}
    folders = [build]
    while folders:
        folder = folders.pop()
        file = folder / "CTestTestfile.cmake"
        for line in file.read_text().splitlines() if file.is_file() else []:
            if match := re.match(r'subdirs\("(.*)"\)', line):
                folders.append(folder / match[1])
            elif match := re.match(r'add_test\((?:\[=*\[)?(.*?)(?:\]=*\])? (".*")\)$', line):
                commands[match[1]] = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r'"((?:[^"\\]|\\.)*)"', match[2])]
    return commands


def check(mutants, source, build):
    known = tests_of(build) if build else None
    wrong = 0
    for mutant in mutants:
        for sentence in mutant.complaints(source, known):
            print(f"{mutant.where}: '{mutant.name}': {sentence}")
            wrong += 1
    names = [mutant.name for mutant in mutants]
    for name in sorted({name for name in names if names.count(name) > 1}):
        print(f"'{name}' is the name of several mutants")
        wrong += 1
    print(f"{len(mutants)} mutants of {len({mutant.law.split(':')[0] for mutant in mutants})} laws, {wrong} complaints")
    return wrong == 0 and bool(mutants)


class Copy:
    """The sources that are changed, and their build."""

    def __init__(self, source, work, arguments, ctest):
        self.source, self.build, self.ctest = work, work / "build" / "mutants", ctest  # as deep as in a checkout, so that a compiler's cache finds the same paths
        self.original = source
        self.passes = {}
        self.update()
        self.run(arguments[:1] + ["-S", str(self.source), "-B", str(self.build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"] + arguments[1:], must=True)
        self.tests = tests_of(self.build)

    def update(self):
        """Only what differs is written, so that a second call compiles little."""
        tracked = subprocess.run(["git", "-C", str(self.original), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
        if tracked.returncode == 0:
            names = [name for name in tracked.stdout.decode().split("\0") if name]
        else:  # no checkout: an archive that was unpacked
            names = [str(p.relative_to(self.original)) for p in self.original.rglob("*") if p.is_file() and p.relative_to(self.original).parts[0] != "build"]
        for name in names:
            here, there = self.original / name, self.source / name
            if not here.is_file():
                continue
            if not there.is_file() or there.read_bytes() != here.read_bytes():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(here, there)
        for folder in self.source.iterdir():
            for there in [p for p in folder.rglob("*") if folder.name != "build" and p.is_file()]:
                if not (self.original / there.relative_to(self.source)).is_file():
                    there.unlink()

    def run(self, command, must=False, limit=7200):
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit)
        except subprocess.TimeoutExpired:
            sys.exit(f"not done after {limit} s: {' '.join(command)}")
        if must and done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}")
        return done.returncode, done.stdout

    def ninja(self, *targets):
        return self.run(["ninja", "-C", str(self.build), "-k", "0", *targets])

    def alone(self, test):
        """Of a test that is one file among others of its program: the file's object, and the command that links a program of that object alone."""
        command = self.tests[test]
        if len(command) < 3 or command[1] != "-#":
            return None
        stem = test.split(".")[-1]
        program = pathlib.Path(command[0]).relative_to(self.build)
        code, out = self.run(["ninja", "-C", str(self.build), "-t", "commands", "-s", str(program)])
        words = out.split() if code == 0 else []
        objects = [word for word in words if word.endswith(".cpp.o")]
        mine = [word for word in objects if word.endswith(f"/{stem}.cpp.o")]
        if len(mine) != 1:
            return None
        one = f"{program}.{stem}"
        words = [one if word == str(program) else word for word in words if word not in objects or word in mine]
        libraries = [word for word in words if word.endswith(".a") and not word.startswith("/")]
        return one, mine + libraries, " ".join(words)

    def make(self, test):
        """Builds what the test starts. @returns exit code, output and the command to run, which is ctest's where there is no shorter way"""
        if test.endswith(".cpp"):
            folder, _, file = test.removeprefix("tests/unit/rheo/").partition("/")
            code, out = self.ninja(f"tests/unit/CMakeFiles/test_{folder}.dir/rheo/{folder}/{file}.o")
            return code, out, ["true"]
        whole = [self.ctest, "--test-dir", str(self.build), "--output-on-failure", "--no-tests=error", "-R", f"^{re.escape(test)}$"]
        if short := self.alone(test):
            program, parts, link = short
            code, out = self.ninja(*parts)
            if code != 0:
                return code, out, whole
            if self.run(["bash", "-c", f"cd '{self.build}' && {link}"])[0] == 0:  # else it needs objects of the others
                return 0, out, [str(self.build / program), *self.tests[test][1:]]
        programs = sorted({str(pathlib.Path(word).relative_to(self.build)) for word in self.tests[test] if word.startswith(f"{self.build}/bin/")})
        code, out = self.ninja(*programs) if programs else (0, "")
        return code, out, whole

    def passed(self, command):
        code, out = self.run(command, limit=1200)
        return code == 0 and "***Skipped" not in out, out

    def fails_before(self, test):
        """Why the test says nothing about any mutant; empty when it passes without one."""
        if test not in self.tests and not test.endswith(".cpp"):
            return f"there is no test '{test}' in this build"
        if test not in self.passes:
            code, out, command = self.make(test)
            if code != 0:
                return f"without a mutant '{test}' cannot be built:\n{out[-3000:]}"
            self.passes[test], out = self.passed(command)
            if not self.passes[test]:
                print(out)
        return "" if self.passes[test] else f"'{test}' fails, or is skipped, without any mutant"

    def verdict(self, mutant):
        """Why the mutant is not as expected; empty when it is."""
        for test in mutant.tests:
            if sentence := self.fails_before(test):
                return sentence
        path = self.source / mutant.file
        whole = path.read_text()
        path.write_text(whole.replace("\n".join(mutant.text), "\n".join(mutant.becomes)))
        survived = []
        try:
            for test in mutant.tests:
                code, out, command = self.make(test)
                if mutant.compiler:
                    if code == 0 or mutant.compiler not in out:
                        return f"the compiler does not say '{mutant.compiler}' of {test}:\n{out[-2000:]}"
                elif code != 0 and not any(sentence in out for sentence in STATIC_ASSERTIONS):
                    return f"it does not compile, so no test can see it:\n{out[-3000:]}"
                elif code != 0:
                    continue
                elif self.passed(command)[0]:
                    survived.append(test)
        finally:
            path.write_text(whole)
        if mutant.lives:
            return "" if survived == mutant.tests else "it is expected to live, but a test fails: take its line `lives` away"
        return f"it survives {', '.join(survived)}" if survived else ""


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--source", type=pathlib.Path, required=True)
    options.add_argument("--build", type=pathlib.Path, help="a finished build, whose tests are those to name")
    options.add_argument("--work", type=pathlib.Path, help="where the changed copy and its build live")
    options.add_argument("--ctest", default="ctest")
    options.add_argument("--check", action="store_true")
    options.add_argument("--list", action="store_true")
    options.add_argument("--cmake", nargs=argparse.REMAINDER, help="the last option: cmake and the arguments that configure the copy")
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    mutants = read_mutants()
    if given.list:
        for mutant in mutants:
            print(f"{mutant.law.split(':')[0]:6} {mutant.name}  [{' '.join(mutant.tests)}]{' lives: ' + mutant.lives if mutant.lives else ''}")
        return 0
    source = given.source.resolve()
    if not check(mutants, source, given.build and given.build.resolve()):
        return 1
    if given.check:
        return 0
    if not given.work:
        options.error("--work names the folder of the changed copy")
    chosen = [m for m in mutants if not given.names or any(name in m.name for name in given.names)]
    copy = Copy(source, given.work.resolve(), given.cmake or ["cmake"], given.ctest)
    wrong = []
    for mutant in chosen:
        began = time.monotonic()
        sentence = copy.verdict(mutant)
        how = "NOT AS EXPECTED" if sentence else "lives" if mutant.lives else "caught"
        print(f"{how:15} {time.monotonic() - began:6.1f} s  {mutant.name}{': ' + sentence if sentence else ''}", flush=True)
        if sentence:
            wrong.append(mutant.name)
    print(f"{len(chosen)} mutants, {len(wrong)} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
