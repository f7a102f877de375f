# SPDX-License-Identifier: Apache-2.0
# The target docs, when doxygen is there: build/<preset>/docs/html/index.html.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
find_program(RHEO_DOXYGEN doxygen)
if(RHEO_DOXYGEN)
  add_custom_target(docs COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DWORK=${CMAKE_BINARY_DIR}/docs"
    "-DDOXYGEN=${RHEO_DOXYGEN}" -P "${PROJECT_SOURCE_DIR}/tests/build/build.docs.cmake" VERBATIM)
endif()
