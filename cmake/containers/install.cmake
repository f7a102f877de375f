# SPDX-License-Identifier: Apache-2.0
# What a container has: cmake -P cmake/containers/install.cmake. rheo goes into /opt/rheo, an MPI with ULFM into /opt/rheo/mpi, which rheo's programs know by that path.
# -DPREFIX=<folder> takes another one than /opt/rheo.
cmake_minimum_required(VERSION 3.25)
if(NOT PREFIX)
  set(PREFIX /opt/rheo)
endif()
set(BUILD "${PREFIX}")
set(CONFIGURE -DRHEO_TESTS=OFF)
include("${CMAKE_CURRENT_LIST_DIR}/../setup.cmake")
rheo_setup()
rheo_configure_and_build()
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${RHEO_BINARY}" --prefix "${PREFIX}" --strip RESULT_VARIABLE rc OUTPUT_QUIET)
if(NOT rc EQUAL 0)
  message(FATAL_ERROR "rheo was built, but not installed into ${PREFIX}.")
endif()
file(REMOVE_RECURSE "${RHEO_BINARY}")
