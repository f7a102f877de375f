#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# containers_test.sh <checkout> [programs...]: the files for containers name files, options and packages that there are. Nothing is built.
set -u
cd "$1" || exit 1
shift
# shellcheck source=tests/support/expect.sh
. tests/support/expect.sh
containers=cmake/containers
for file in Containerfile rheo.def; do
  for path in $(grep -o '/src/[^ ]*' "$containers/$file" | sed 's,^/src/,,' | sort -u); do
    expect "$file: $path" 0 "$([[ -e $path ]]; echo $?)"
  done
  for path in $(grep -o 'cmake/[^ ]*' "$containers/$file" | sort -u); do
    expect "$file: $path" 0 "$([[ -e $path ]]; echo $?)"
  done
done
copied() { sed -n "$2" "$containers/$1" | grep -o '/src/[A-Za-z.]\+\|^COPY [^/]* /src/$' | sed 's,^COPY \(.*\) /src/$,\1,; s,/src/,,' | tr ' ' '\n' | sort -u | paste -sd' '; }
expect "both are built from the same sources" "$(copied Containerfile '/^COPY/p')" "$(copied rheo.def '/^%files/,/^%post/p')"
built_with() { grep -o 'install -y --no-install-recommends cmake.*' "$containers/$1" | tr ' ' '\n' | grep -Ev '^(install|-.*|openssh-client)$' | sort | paste -sd' '; }
expect "both are built with the same packages" "$(built_with Containerfile)" "$(built_with rheo.def)"
installed=$(sed -n 's/^    set(PREFIX \(.*\))/\1/p; s/^  set(PREFIX \(.*\))/\1/p' "$containers/install.cmake")
expect "where install.cmake puts rheo" /opt/rheo "$installed"
for file in Containerfile rheo.def; do
  expect "$file: programs of rheo and of its MPI are in the path" 1 "$(grep -c "PATH=$installed/bin:$installed/mpi/bin:" "$containers/$file")"
done
# Each library that the programs load is in a package which the last stage has, or which every Debian has.
listed=" $(sed -n '/^FROM .*RUN_IMAGE/,$p' "$containers/Containerfile" | tr -s ' \\\n' ' ') "
if command -v dpkg >/dev/null && command -v ldd >/dev/null && grep -q 'VERSION_ID="12"' /etc/os-release; then
  for program in "$@"; do
    for library in $(readelf -d "$program" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p'); do
      file=$(ldd "$program" | awk -v name="$library" '$1 == name { print $3 }')
      package=$(dpkg -S "$(readlink -f "${file:-/}")" 2>/dev/null | sed 's/:.*//')
      case $package in
        '' | libc6 | libgcc-s1 | libstdc++6) ;; # of no package: the MPI, which lies beside rheo
        *) expect "${program##*/} loads $library" 1 "$([[ $listed == *" $package "* ]] && echo 1 || echo "$package, which the image lacks")" ;;
      esac
    done
  done
fi
exit $((failures > 0))
