# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=<g++> -DFLAGS=<where its headers are> -DWORK=<folder> -P uncalled.cmake
# Who includes the library and calls nothing of it has nothing instantiated for it: no function that lets a vector grow (7 to
# 14 ms of compile time each). The compiler instantiates what a function asks for whether the function is called or not,
# unless that is a template; hence `template <class OnlyWhenCalled = void>` before functions of the library that are templates of nothing.
cmake_minimum_required(VERSION 3.25)

function(growing_vectors result source)
  execute_process(COMMAND "${COMPILER}" -std=c++20 -fsyntax-only "-fdump-tree-original=${WORK}/uncalled.original" ${FLAGS} "${source}"
    COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS "${WORK}/uncalled.original" functions REGEX "^;; Function .*std::vector.*::_M_(realloc|fill|range|default|assign)_?(insert|append|assign|aux)")
  set("${result}" "${functions}" PARENT_SCOPE)
endfunction()

# The control: a function that is no template and is not called.
file(WRITE "${WORK}/control.cpp" "#include <vector>\nstruct mine {};\ninline void add(std::vector<mine>& to) { to.push_back({}); }\n")
growing_vectors(found "${WORK}/control.cpp")
if(NOT found MATCHES "mine")
  message(FATAL_ERROR "The growing vector of an uncalled function was not found: the compiler's list has another form.")
endif()

file(GLOB umbrellas "${CMAKE_CURRENT_LIST_DIR}/../../../include/rheo/*.hpp")
list(TRANSFORM umbrellas REPLACE "(.+)" "#include \"\\1\"\n")
list(JOIN umbrellas "" text)
file(WRITE "${WORK}/all.cpp" "${text}")
growing_vectors(found "${WORK}/all.cpp")
if(found)
  list(JOIN found "\n  " found)
  message(FATAL_ERROR "Uncalled functions let vectors grow; those that cause it should be `template <class OnlyWhenCalled = void>`:\n  ${found}")
endif()
