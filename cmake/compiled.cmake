# SPDX-License-Identifier: Apache-2.0
# rheo::compiled: the functions of the library that RHEO_COMPILED_IN names (units/compiled.hpp), compiled once. For programs of many source files;
# who links rheo::library alone compiles what they call. A source file per folder, built when something links it.
set(compiled_sources "")
foreach(folder energy model partition pipeline plan planner recover reshard schedule tensor)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/compiled/${folder}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#define RHEO_INSTANCE_IN_${folder}\n#include \"rheo/${folder}.hpp\"\n")
  list(APPEND compiled_sources "${source}")
endforeach()
add_library(rheo_compiled STATIC EXCLUDE_FROM_ALL ${compiled_sources})
add_library(rheo::compiled ALIAS rheo_compiled)
target_compile_definitions(rheo_compiled PUBLIC RHEO_COMPILED)
target_link_libraries(rheo_compiled PUBLIC rheo::library PRIVATE $<BUILD_INTERFACE:rheo::warnings>)
