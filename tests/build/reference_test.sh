#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reference_test.sh <rheo> <sources> <work folder>: the committed reference pages are what the program writes; every option that --help prints and every
# key of an effective config stands in them; shell completion completes; man pages have their sections.
set -u
rheo=$1 sources=$2 work=$3
failed=0
fail() {
  echo "$*"
  failed=1
}
rm -rf "$work" && "$rheo" reference "$work" || fail "rheo reference: exit code $?"

for page in config.md cli.md exit-codes.md; do
  diff -u "$sources/docs/reference/$page" "$work/reference/$page" || fail "docs/reference/$page is not current: cmake --build build/release --target reference"
done

commands=$("$rheo" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[[ -n $commands ]] || fail "rheo --help names no command"
for command in $commands; do
  section=$(sed -n "/^## rheo $command\$/,/^## /p" "$work/reference/cli.md")
  for option in $("$rheo" "$command" --help | grep -o '^  --[a-z-]*'); do
    grep -Eq -- "^\| (\`|<code>)$option" <<<"$section" || fail "docs/reference/cli.md: rheo $command has $option"
    grep -q -- "^.B ${option//-/\\\\-}" "$work/man/rheo-$command.1" || fail "rheo-$command.1: $option is missing"
  done
  for part in NAME SYNOPSIS OPTIONS "EXIT STATUS"; do
    grep -q "^.SH $part" "$work/man/rheo-$command.1" || fail "rheo-$command.1 has no section $part"
  done
  grep -q "\\b$command\\b" "$work/completion/_rheo" "$work/completion/rheo.fish" || fail "completion lacks $command"
done
if command -v groff >/dev/null; then
  for page in "$work"/man/*; do
    warnings=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null)
    [[ -z $warnings ]] || fail "$page: $warnings"
  done
fi

completes() { # <expected word> <words...>: the last word is being typed
  local expected=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  compopt() { :; }
  _rheo
  [[ " ${COMPREPLY[*]} " == *" $expected "* ]] || fail "completion of '$*' gives '${COMPREPLY[*]}', not $expected"
}
source "$work/completion/rheo.bash" || fail "the completion for bash is no script"
completes train rheo tr
completes fork rheo train job.toml --resume f
completes --resume rheo train --re
completes train.steps= rheo train --set train.st
command -v zsh >/dev/null && { zsh -n "$work/completion/_rheo" || fail "the completion for zsh is no script"; }
command -v fish >/dev/null && { fish -n "$work/completion/rheo.fish" || fail "the completion for fish is no script"; }
exit $failed
