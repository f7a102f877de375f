# SPDX-License-Identifier: Apache-2.0
# The thread sanitizer over the kernels with their threads, and over the watchdog.
# ROOT, WORK, MPI_HOME.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/nested.cmake")
run("${CMAKE_COMMAND}" --preset tsan -S "${ROOT}" -B "${WORK}" "-DMPI_HOME=${MPI_HOME}")
run("${CMAKE_COMMAND}" --build "${WORK}" -j ${jobs} --target test_kernels test_executor)

# Its shadow memory has fixed places, which a kernel that spreads addresses wider than it expects can take.
find_program(SETARCH setarch REQUIRED)
set(tsan "${CMAKE_COMMAND}" -E env "TSAN_OPTIONS=halt_on_error=1:exitcode=66" "${SETARCH}" -R
  "${CMAKE_CTEST_COMMAND}" --test-dir "${WORK}" --output-on-failure --no-tests=error -LE "^long$")
run(${tsan} -R "^kernels[.]")
run(${tsan} -R "^executor[.]watchdog$")
