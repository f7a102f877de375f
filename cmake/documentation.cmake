# SPDX-License-Identifier: Apache-2.0
# Targets: docs, the site, as cmake -P cmake/docs.cmake builds it (build/<preset>/docs/site/index.html); reference, which writes the generated pages of
# docs/reference again. Man pages and shell completion are written by each build of rheo and installed with it.
if(NOT PROJECT_IS_TOP_LEVEL OR NOT TARGET rheo)
  return()
endif()
set(rheo_reference "${CMAKE_BINARY_DIR}/reference") # written by executor/CMakeLists.txt
if(NOT CMAKE_CROSSCOMPILING)
  add_custom_target(reference COMMAND "${CMAKE_COMMAND}" -E copy "${rheo_reference}/reference/config.md" "${rheo_reference}/reference/cli.md" "${rheo_reference}/reference/exit-codes.md"
    "${PROJECT_SOURCE_DIR}/docs/reference" DEPENDS rheo VERBATIM)
endif()
add_custom_target(docs COMMAND "${CMAKE_COMMAND}" "-DBUILD=${CMAKE_BINARY_DIR}" "-DRHEO=$<TARGET_FILE:rheo>" -P "${PROJECT_SOURCE_DIR}/cmake/docs.cmake" DEPENDS rheo VERBATIM)
