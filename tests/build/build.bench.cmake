# SPDX-License-Identifier: Apache-2.0
# All benchmarks compile and link, and those of planning and schedules run once: they are in no default build. ROOT, WORK, MPI_HOME.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/nested.cmake")
run("${CMAKE_COMMAND}" --preset release -S "${ROOT}" -B "${WORK}" "-DMPI_HOME=${MPI_HOME}" -DRHEO_BENCH=ON -DRHEO_TESTS=OFF)
run("${CMAKE_COMMAND}" --build "${WORK}" -j ${jobs})
foreach(bench bench_planning bench_schedules)
  run("${WORK}/bin/${bench}" --benchmark_min_time=0.001)
endforeach()
