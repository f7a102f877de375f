# SPDX-License-Identifier: Apache-2.0
# Builds the program `rheo` with another MPI: ROOT, WORK, CXX, MPIRUN, MPICXX. Without optimisation, which only the
# kernels need (they bring their own flags) for the same bits.
cmake_minimum_required(VERSION 3.25)
# An MPI is a folder with bin/mpirun and bin/mpicxx; wrappers, since both look at the name that they are called by.
foreach(program mpirun mpicxx)
  string(TOUPPER "${program}" variable)
  file(WRITE "${WORK}/home/bin/${program}.new" "#!/bin/sh\nexec \"${${variable}}\" \"$@\"\n")
  file(CHMOD "${WORK}/home/bin/${program}.new" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  file(COPY_FILE "${WORK}/home/bin/${program}.new" "${WORK}/home/bin/${program}" ONLY_IF_DIFFERENT)
endforeach()
cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
if(jobs GREATER 2)
  set(jobs 2) # other tests run beside
endif()
foreach(arguments
    "-S;${ROOT};-B;${WORK}/build;-G;Ninja;-DCMAKE_CXX_COMPILER=${CXX};-DCMAKE_BUILD_TYPE=Debug;-DCMAKE_CXX_FLAGS_DEBUG=;-DRHEO_TESTS=OFF;-DRHEO_EXECUTOR=ON;-DRHEO_ANY_MPI=ON;-DMPI_HOME=${WORK}/home"
    "--build;${WORK}/build;--target;rheo;-j;${jobs}")
  execute_process(COMMAND "${CMAKE_COMMAND}" ${arguments} RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "cmake ${arguments} failed")
  endif()
endforeach()
