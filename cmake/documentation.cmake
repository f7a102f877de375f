# SPDX-License-Identifier: Apache-2.0
# The target docs: the site, as cmake -P cmake/docs.cmake builds it (build/<preset>/docs/site/index.html).
if(NOT PROJECT_IS_TOP_LEVEL OR NOT TARGET rheo)
  return()
endif()
add_custom_target(docs COMMAND "${CMAKE_COMMAND}" "-DBUILD=${CMAKE_BINARY_DIR}" "-DRHEO=$<TARGET_FILE:rheo>" -P "${PROJECT_SOURCE_DIR}/cmake/docs.cmake" DEPENDS rheo VERBATIM)
