# SPDX-License-Identifier: Apache-2.0
# rheo::compiled: what the headers declare as `extern template` where RHEO_COMPILED is defined, compiled once. For programs of many source files; who
# links rheo::library alone compiles what they call. A source file per folder of include/rheo, built when something links it.
file(GLOB umbrellas CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/rheo/*.hpp")
set(compiled_sources "")
foreach(umbrella IN LISTS umbrellas)
  cmake_path(GET umbrella STEM folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/rheo/${folder}/*.hpp")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/compiled/${folder}.cpp")
  add_custom_command(OUTPUT "${source}" VERBATIM DEPENDS ${headers} "${CMAKE_CURRENT_LIST_DIR}/instantiations.cmake"
    COMMAND "${CMAKE_COMMAND}" "-DUMBRELLA=${umbrella}" "-DOUT=${source}" -P "${CMAKE_CURRENT_LIST_DIR}/instantiations.cmake")
  list(APPEND compiled_sources "${source}")
endforeach()
add_library(rheo_compiled STATIC EXCLUDE_FROM_ALL ${compiled_sources})
add_library(rheo::compiled ALIAS rheo_compiled)
target_compile_definitions(rheo_compiled PUBLIC RHEO_COMPILED)
target_link_libraries(rheo_compiled PUBLIC rheo::library PRIVATE $<BUILD_INTERFACE:rheo::warnings>)
