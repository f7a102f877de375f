# SPDX-License-Identifier: Apache-2.0
# cmake -DUMBRELLA=include/rheo/<folder>.hpp -DOUT=<file> -P instantiations.cmake: a source file that defines what the headers of this folder declare as
# `extern template`; one without code where they declare nothing.
cmake_minimum_required(VERSION 3.25)
cmake_path(GET UMBRELLA STEM folder)
cmake_path(GET UMBRELLA PARENT_PATH root)
file(GLOB_RECURSE headers "${root}/${folder}/*.hpp")
set(definitions "")
foreach(header IN LISTS headers)
  file(READ "${header}" text)
  string(REPLACE ";" "@" text "${text}") # or it would be a list
  string(REGEX MATCHALL "\nextern template [^@]+@" declarations "${text}")
  foreach(declaration IN LISTS declarations)
    string(REGEX REPLACE "^\nextern (.*)@$" "\\1;\n" definition "${declaration}")
    string(APPEND definitions "${definition}")
  endforeach()
endforeach()
if(definitions)
  set(definitions "#include \"rheo/${folder}.hpp\"\n\nnamespace rheo::inline v0 {\n\n${definitions}\n}  // namespace rheo::inline v0\n")
endif()
file(WRITE "${OUT}" "${definitions}")
