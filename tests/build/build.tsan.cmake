# SPDX-License-Identifier: Apache-2.0
# The thread sanitizer over the kernels with their threads, the watchdog, the parts that set clocks, and a whole training.
# ROOT, WORK, MPI_HOME.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/nested.cmake")
run("${CMAKE_COMMAND}" --preset tsan -S "${ROOT}" -B "${WORK}" "-DMPI_HOME=${MPI_HOME}")
run("${CMAKE_COMMAND}" --build "${WORK}" -j ${jobs} --target test_kernels test_executor test_power rheo)

# Its shadow memory has fixed places, which a kernel that spreads addresses wider than it expects can take; and the hooks on memory
# of UCX, which some MPIs load, call it from threads that are already gone. Processes that a test forks may start threads of their own.
find_program(SETARCH setarch REQUIRED)
set(tsan "${CMAKE_COMMAND}" -E env "TSAN_OPTIONS=halt_on_error=1:exitcode=66:die_after_fork=0" "UCX_MEM_EVENTS=no" "UCX_MEM_MMAP_HOOK_MODE=none"
  "${SETARCH}" -R
  "${CMAKE_CTEST_COMMAND}" --test-dir "${WORK}" --output-on-failure --no-tests=error -LE "^(long|gpu|cudnn|cublaslt)$")
run(${tsan} -R "^kernels[.]")
run(${tsan} -R "^executor[.]watchdog$")
run(${tsan} -R "^power[.]")
file(READ "${WORK}/CMakeCache.txt" cache)
string(REGEX MATCH "RHEO_MPI_CHOSEN:INTERNAL=([^\n]*)" found "${cache}")
run("${SETARCH}" -R "${ROOT}/cmake/run_mpi.sh" "${CMAKE_MATCH_1}/bin/mpirun" --ft 0 600 "${ROOT}/tests/build/tsan_training.sh" "${WORK}/bin/rheo" "${WORK}/training")
