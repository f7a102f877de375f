# SPDX-License-Identifier: Apache-2.0
# The thread sanitizer over the kernels with their threads, the watchdog, and a training on one rank of three threads.
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
run("${CMAKE_COMMAND}" --build "${WORK}" -j ${jobs} --target test_kernels test_executor rheo)

# Its shadow memory has fixed places, which a kernel that spreads addresses wider than it expects can take.
find_program(SETARCH setarch REQUIRED)
set(tsan "${CMAKE_COMMAND}" -E env "TSAN_OPTIONS=halt_on_error=1:exitcode=66:suppressions=${ROOT}/cmake/races_of_mpi.txt" "${SETARCH}" -R)
run(${tsan} "${WORK}/bin/test_kernels" "~[long]")
run(${tsan} "${WORK}/bin/test_executor" -\# "[#watchdog]")
file(WRITE "${WORK}/job/job.toml" "schema = 1\n[model]\ncontext = 16\nwidth = 16\nblocks = 2\n[train]\nsteps = 5\nmicrobatches = 2
microbatch = { sequences = 2, tokens = 16 }\n[plan]\nfailures = 0\n[run]\nthreads = 3\n")
run("${CMAKE_COMMAND}" -E chdir "${WORK}/job" ${tsan} "${WORK}/bin/rheo" train job.toml)
