#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# any_mpi.sh <mpicxx> <mpirun> <work folder> <flags...>: compiles the component's sources and its tests by another MPI's compiler, with nothing but the library's
# headers, and runs them on four ranks.
set -eu
mpicxx=$1 mpirun=$2 work=$3
shift 3
root=$(cd "$(dirname "$0")/../../.." && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
mkdir -p "$work"
objects=()
for source in "$root"/executor/reshard/*.cpp; do
  object=$work/$(basename "$source" .cpp).o
  "$mpicxx" -std=c++20 -O1 -Wall -Wextra "$@" -I"$root" -I"$root/include" -c "$source" -o "$object"
  objects+=("$object")
done
for program in chains formats refusals; do
  "$mpicxx" -std=c++20 -O1 "$@" -I"$root" -I"$root/include" "$root/tests/system/reshard/$program.cpp" "${objects[@]}" -o "$work/$program"
done
timeout 100 "$mpirun" -n 4 "$work/chains" 60
timeout 100 "$mpirun" -n 4 "$work/formats" 60
timeout 60 "$mpirun" -n 2 "$work/refusals"
