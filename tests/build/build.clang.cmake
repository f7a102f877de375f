# SPDX-License-Identifier: Apache-2.0
# The library with clang: every header alone without a warning, and the examples with what they print. ROOT, WORK, CLANG.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/nested.cmake")
run("${CMAKE_COMMAND}" -S "${ROOT}" -B "${WORK}" -G Ninja "-DCMAKE_CXX_COMPILER=${CLANG}" -DRHEO_EXECUTOR=OFF -DRHEO_WERROR=ON)
run("${CMAKE_COMMAND}" --build "${WORK}" -j ${jobs} --target rheo_headers)
# libstdc++ 12 makes no std::string at compile time for clang, which the example about energy would need.
set(targets "")
file(GLOB sources RELATIVE "${ROOT}/examples" "${ROOT}/examples/[0-9]*.cpp")
list(REMOVE_ITEM sources 07_save_energy.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  list(APPEND targets example_${name})
endforeach()
list(JOIN targets "|" which)
string(REPLACE "example_" "example\\." which "${which}")
run("${CMAKE_COMMAND}" --build "${WORK}" -j ${jobs} --target ${targets})
run("${CMAKE_CTEST_COMMAND}" --test-dir "${WORK}" --output-on-failure --no-tests=error -R "^(${which})$")
