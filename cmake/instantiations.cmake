# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=<folder of include/rheo> -DOUT=<file> -DHEADERS=<headers, with | between them> -P instantiations.cmake: a source file that defines what
# these headers declare as `extern template`.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "|" ";" HEADERS "${HEADERS}")
set(text "#include \"rheo/${FOLDER}.hpp\"\n\nnamespace rheo::inline v0 {\n\n")
foreach(header IN LISTS HEADERS)
  file(READ "${header}" source)
  string(REPLACE ";" "@" source "${source}") # or it would be a list
  string(REGEX MATCHALL "\nextern template [^@]+@" declarations "${source}")
  foreach(declaration IN LISTS declarations)
    string(REGEX REPLACE "^\nextern " "" declaration "${declaration}")
    string(REPLACE "@" ";\n" declaration "${declaration}")
    string(APPEND text "${declaration}")
  endforeach()
endforeach()
file(WRITE "${OUT}" "${text}\n}  // namespace rheo::inline v0\n")
