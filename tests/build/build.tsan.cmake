# SPDX-License-Identifier: Apache-2.0
# The thread sanitizer over the kernels with their threads, and over the watchdog.
# ROOT, WORK, MPI_HOME.
cmake_minimum_required(VERSION 3.25)
cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command} failed")
  endif()
endfunction()
run("${CMAKE_COMMAND}" --preset tsan -S "${ROOT}" -B "${WORK}" "-DMPI_HOME=${MPI_HOME}")
run("${CMAKE_COMMAND}" --build "${WORK}" -j ${jobs} --target test_kernels test_executor)

# Its shadow memory has fixed places, which a kernel that spreads addresses wider than it expects can take.
find_program(SETARCH setarch REQUIRED)
set(tsan "${CMAKE_COMMAND}" -E env "TSAN_OPTIONS=halt_on_error=1:exitcode=66" "${SETARCH}" -R)
run(${tsan} "${WORK}/bin/test_kernels" "~[long]")
run(${tsan} "${WORK}/bin/test_executor" -\# "[#watchdog]")
