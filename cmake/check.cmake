# SPDX-License-Identifier: Apache-2.0
# cmake -P cmake/check.cmake: set-up, build, all tests but the long ones. Before -P may stand
#   -DLABEL=long    runs the tests of that label in place of them
#   -DPRESET=asan   another preset          -DBUILD=<folder>   another folder          -DCONFIGURE="-D..;-D.." for the configure step
# Shows ctest's own summary and fails when a test does.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/setup.cmake")
rheo_setup()
if(NOT PRESET STREQUAL "library-only")
  rheo_setup_for_tests()
endif()
rheo_configure_and_build()

if(LABEL)
  set(which -L "^${LABEL}$")
else()
  set(which -LE "^long$")
endif()
rheo_cores(jobs)
math(EXPR jobs "${jobs} + 1") # while jobs of several ranks run, half of the time is waiting
execute_process(
  COMMAND "${CMAKE_CTEST_COMMAND}" --test-dir "${RHEO_BINARY}" --output-on-failure --no-tests=error ${which} -j ${jobs}
  RESULT_VARIABLE rc)
if(NOT rc EQUAL 0)
  if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.29)
    cmake_language(EXIT ${rc})
  endif()
  message(FATAL_ERROR "Not all tests passed.")
endif()
