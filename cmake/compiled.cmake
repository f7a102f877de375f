# SPDX-License-Identifier: Apache-2.0
# rheo::compiled: what the headers declare as `extern template` where RHEO_COMPILED is defined, compiled once. For programs of many source files; who
# links rheo::library alone compiles what they call. A source file per folder of include/rheo, built when something links it.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/rheo/*.hpp")
set(folders "")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" declared REGEX "^extern template ")
  if(declared)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include/rheo" OUTPUT_VARIABLE folder)
    string(REGEX REPLACE "/.*" "" folder "${folder}")
    list(APPEND folders "${folder}")
    list(APPEND headers_of_${folder} "${header}")
  endif()
endforeach()
list(REMOVE_DUPLICATES folders)
set(compiled_sources "")
foreach(folder IN LISTS folders)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/compiled/${folder}.cpp")
  list(JOIN headers_of_${folder} "|" joined)
  add_custom_command(OUTPUT "${source}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${folder}" "-DOUT=${source}" "-DHEADERS=${joined}" -P "${CMAKE_CURRENT_LIST_DIR}/instantiations.cmake"
    DEPENDS ${headers_of_${folder}} "${CMAKE_CURRENT_LIST_DIR}/instantiations.cmake")
  list(APPEND compiled_sources "${source}")
endforeach()
add_library(rheo_compiled STATIC EXCLUDE_FROM_ALL ${compiled_sources})
add_library(rheo::compiled ALIAS rheo_compiled)
target_compile_definitions(rheo_compiled PUBLIC RHEO_COMPILED)
target_link_libraries(rheo_compiled PUBLIC rheo::library PRIVATE $<BUILD_INTERFACE:rheo::warnings>)
