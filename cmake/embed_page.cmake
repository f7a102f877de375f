# SPDX-License-Identifier: Apache-2.0
# cmake -DASSETS=<executor/report/assets> -DOUT=<file.cpp> -P embed_page.cmake: the page of `rheo report` as two texts of C++, before and after its data.
cmake_minimum_required(VERSION 3.25)
file(READ "${ASSETS}/page.html" page)
foreach(part style.css chart.js page.js)
  file(READ "${ASSETS}/${part}" text)
  string(REPLACE "@${part}@" "${text}" page "${page}")
endforeach()
string(FIND "${page}" "@data@" at)
string(LENGTH "@data@" length)
string(SUBSTRING "${page}" 0 ${at} before)
math(EXPR at "${at} + ${length}")
string(SUBSTRING "${page}" ${at} -1 after)
file(WRITE "${OUT}" "// made by cmake/embed_page.cmake
#include \"executor/report/page_asset.hpp\"

namespace rheo::inline v0 {

std::string_view const page_before_data = R\"rheo(${before})rheo\";
std::string_view const page_after_data = R\"rheo(${after})rheo\";

}  // namespace rheo::inline v0
")
