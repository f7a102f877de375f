#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""site.py ROOT WORK RHEO: puts the pages of docs/ into WORK/pages as MkDocs takes them.

  * `<!-- picture: rheo ... | caption -->` becomes the picture that this command draws: on standard output, or into the file that stands for OUT
  * links to files outside of docs/ (sources, the changelog) lead to a page with that file
"""
import hashlib
import html
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

root, work, rheo = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()
docs, pages = root / "docs", work / "pages"
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".cu": "cuda", ".py": "python", ".sh": "bash", ".sbatch": "bash", ".txt": "cmake", ".cmake": "cmake", ".toml": "toml", ".csv": "text", ".cff": "yaml"}
waiting, seen = [], set()


def staged(path):
    """Where a file of the project stands below WORK/pages; it is put there when it is first asked for."""
    if path.is_relative_to(docs):
        return pages / path.relative_to(docs)
    if path not in seen:
        seen.add(path)
        waiting.append(path)
    name = path.relative_to(root)
    return pages / "source" / (name if path.suffix == ".md" else name.with_name(name.name + ".md"))


def picture(command, caption, page):
    name = hashlib.sha256(command.encode()).hexdigest()[:12] + ".svg"
    out = pages / "pictures" / name
    out.parent.mkdir(parents=True, exist_ok=True)
    words = [str(rheo)] + [str(out) if word == "OUT" else word for word in shlex.split(command)[1:]]
    drawn = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout
    if not out.exists():
        out.write_text(drawn)
    link = os.path.relpath(out, page.parent)
    shown = html.escape(re.sub(r" --svg OUT| --format svg", "", command))
    return f'<figure class="picture" markdown="0"><img src="{link}" alt="{html.escape(caption)}" loading="lazy"><figcaption>{html.escape(caption)} (<code>{shown}</code>)</figcaption></figure>'


def convert(text, source, page):
    """The page's text with pictures and with links as they are in the site; blocks of code stay as they are."""
    def link(found):
        target = found.group(1)
        name, mark, anchor = target.partition("#")
        if not name or re.match(r"[a-z]+:", name) or name.startswith("../api/"):
            return found.group(0)
        there = (source.parent / name).resolve()
        return f"]({os.path.relpath(staged(there), page.parent)}{mark}{anchor})"

    lines, code = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            line = re.sub(r"<!-- picture: (.*?) \| (.*?) -->", lambda found: picture(found.group(1), found.group(2), page), line)
            line = re.sub(r"\]\(([^)\s]+)\)", link, line)
        lines.append(line)
    return "\n".join(lines)


shutil.rmtree(pages, ignore_errors=True)
for source in sorted(docs.rglob("*")):
    if source.is_file():
        page = pages / source.relative_to(docs)
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            front = "---\nhide: [navigation]\n---\n" if page == pages / "index.md" else ""
            page.write_text(front + convert(source.read_text(), source, page))
        else:
            shutil.copy(source, page)
while waiting:
    source = waiting.pop()
    page = staged(source)
    page.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".md":
        page.write_text(convert(source.read_text(), source, page))
    else:
        fence = "````"
        page.write_text(f"---\nsearch: {{exclude: true}}\nhide: [navigation, toc]\n---\n# {source.relative_to(root)}\n\n{fence}{LANGUAGES.get(source.suffix, 'text')}\n{source.read_text()}{fence}\n")

assets = pages / "assets"
assets.mkdir(parents=True, exist_ok=True)
for name in ("site.css", "logo.svg"):
    shutil.copy(root / "cmake/docs" / name, assets / name)
shutil.copy(root / "cmake/docs/mkdocs.yml", work / "mkdocs.yml")
