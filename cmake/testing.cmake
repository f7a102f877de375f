# SPDX-License-Identifier: Apache-2.0
# How tests enter ctest. Every test has a time-out; what is longer than the default check allows has the label "long".
find_package(Catch2 QUIET) # 2 or 3; tests/support/catch.hpp hides which
if(NOT TARGET Catch2::Catch2)
  message(FATAL_ERROR "The tests need Catch2 (Debian: catch2); cmake -P cmake/check.cmake sets it up, -DRHEO_TESTS=OFF leaves them out.")
endif()

set(rheo_cmake_folder "${CMAKE_CURRENT_LIST_DIR}")

# Under the sanitizers everything takes several times as long, and leaks of other libraries are suppressed by name.
set(rheo_patience 1)
set(rheo_test_environment "")
# Some tests compare with published files: RHEO_SHARED names their folder, else `shared` beside the project is taken.
set(RHEO_SHARED "$ENV{RHEO_SHARED}" CACHE PATH "folder of published files (data/perseus, vectors/schedules) that tests compare with")
if(NOT RHEO_SHARED AND EXISTS "${PROJECT_SOURCE_DIR}/../shared/vectors/schedules")
  file(REAL_PATH "${PROJECT_SOURCE_DIR}/../shared" RHEO_SHARED)
endif()
if(RHEO_SHARED)
  list(APPEND rheo_test_environment "RHEO_SHARED=${RHEO_SHARED}")
else()
  message(STATUS "RHEO_SHARED names no folder of published files: the tests that compare with them are left out")
endif()
if(RHEO_SANITIZE)
  set(rheo_patience 5)
  list(APPEND rheo_test_environment "ASAN_OPTIONS=abort_on_error=1:detect_leaks=1:detect_stack_use_after_return=0"
    "UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1"
    "LSAN_OPTIONS=suppressions=${rheo_cmake_folder}/leaks_of_others.txt:print_suppressions=0")
endif()

# rheo_limit(<test> <seconds> labels...): time-out, labels and environment of a test.
function(rheo_limit test seconds)
  math(EXPR seconds "${seconds} * ${rheo_patience}")
  set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds} LABELS "${ARGN}" ENVIRONMENT "${rheo_test_environment}")
endfunction()

# rheo_add_test_folder(<name> <folder> [libraries...]): one executable test_<name> from all *.cpp below the folder, one
# ctest entry per file. Cases tagged [.long] run in an entry of their own, labelled long. A folder below it that has a CMakeLists.txt is
# left to that.
function(rheo_add_test_folder name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  file(GLOB_RECURSE others CONFIGURE_DEPENDS "${folder}/*/CMakeLists.txt")
  foreach(other IN LISTS others)
    cmake_path(GET other PARENT_PATH other)
    list(FILTER sources EXCLUDE REGEX "^${other}/")
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE rheo_catch_main rheo::compiled rheo::warnings ${ARGN})
  target_compile_definitions(test_${name} PRIVATE RHEO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>) # compiles in four fifths of the time; rheo::compiled keeps -O2
  rheo_add_test_entries(${name} test_${name} ${sources})
endfunction()

# rheo_add_test_entries(<name> <executable> sources...): the ctest entries <name>.<file>, labelled with the name's last part.
function(rheo_add_test_entries name executable)
  string(REGEX REPLACE ".*[.]" "" label "${name}")
  set(no_match_fails "")
  if(Catch2_VERSION VERSION_LESS 3)
    set(no_match_fails -w NoTests) # version 3 fails by itself when a filter matches nothing
  endif()
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" cases REGEX "^ *[A-Z_]*(TEST_CASE|SCENARIO)[A-Z_]*\\(")
    if(NOT cases) # all of it is static_assert: compiling was the test
      continue()
    endif()
    cmake_path(GET source STEM stem)
    file(STRINGS "${source}" long REGEX "\\[\\.long\\]")
    list(LENGTH cases case_count)
    list(LENGTH long long_count)
    if(long_count LESS case_count)
      add_test(NAME ${name}.${stem} COMMAND ${executable} -\# "[#${stem}]~[long]" ${no_match_fails})
      rheo_limit(${name}.${stem} 120 ${label})
    endif()
    if(long)
      add_test(NAME ${name}.${stem}.long COMMAND ${executable} -\# "[#${stem}][long]" ${no_match_fails})
      rheo_limit(${name}.${stem}.long 1200 ${label} long)
    endif()
  endforeach()
endfunction()

# rheo_add_skipped_test(<name> <reason> [labels...]): says why it was skipped, and fails with CI=true.
function(rheo_add_skipped_test name reason)
  add_test(NAME ${name} COMMAND "${rheo_cmake_folder}/run_mpi.sh" --skipped "${reason}")
  rheo_limit(${name} 10 ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# rheo_needs_executor(<test>): without the executor the calling file ends here, and the test is a skipped one if it was asked for.
macro(rheo_needs_executor test)
  if(NOT TARGET rheo)
    if(RHEO_EXECUTOR)
      rheo_add_skipped_test(${test} "the executor is not in this build: ${RHEO_MPI_VERDICT}; BLAS: ${RHEO_BLAS_LIBRARY}" mpi)
    endif()
    return()
  endif()
endmacro()

# rheo_add_mpi_test(NAME <name> RANKS <n> COMMAND <program> [args...] [TIMEOUT <s>] [LABELS ...] [PLAIN] [SERIAL])
# Runs the command on n ranks. At the time-out, and at the end, no process of the test stays behind: one that does fails it.
# Without ULFM the test is skipped, with CI=true it fails; PLAIN tests need no ULFM. RANKS 0: the command starts mpirun itself
# (RHEO_MPIRUN in its environment).
function(rheo_add_mpi_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "PLAIN;SERIAL" "NAME;RANKS;TIMEOUT" "COMMAND;LABELS")
  if(NOT arg_NAME OR NOT arg_COMMAND OR NOT DEFINED arg_RANKS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rheo_add_mpi_test(NAME ... RANKS n COMMAND ...): ${arg_NAME} ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT RHEO_MPIRUN OR (NOT RHEO_ULFM AND NOT arg_PLAIN))
    rheo_add_skipped_test(${arg_NAME} "this test needs an MPI with ULFM (${RHEO_MPI_VERDICT})" mpi ${arg_LABELS})
    return()
  endif()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET "${program}")
    set(program "$<TARGET_FILE:${program}>")
  endif()
  set(ft --ft)
  if(arg_PLAIN)
    set(ft --plain)
  endif()
  math(EXPR seconds "${arg_TIMEOUT} * ${rheo_patience}")
  add_test(NAME ${arg_NAME} COMMAND "${rheo_cmake_folder}/run_mpi.sh"
    "${RHEO_MPIRUN}" ${ft} ${arg_RANKS} ${seconds} "${program}" ${arg_COMMAND})
  math(EXPR beyond "${arg_TIMEOUT} + 30") # the runner ends the ranks by itself; ctest's own limit is only the last resort
  set(processors ${arg_RANKS})
  if(processors LESS 1)
    set(processors 2)
  endif()
  rheo_limit(${arg_NAME} ${beyond} mpi ${arg_LABELS})
  set_tests_properties(${arg_NAME} PROPERTIES PROCESSORS ${processors} SKIP_RETURN_CODE 77)
  if(arg_SERIAL)
    set_tests_properties(${arg_NAME} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# rheo_add_compile_fail_test(<file.cpp> [compile options...]): with -DRHEO_MISTAKE the file must be refused with each sentence
# that its lines "// expect: <sentence>" give; without it, as the control, it must compile without a warning. WITHIN n: sentences and the
# user's file and line are in the first n lines of the output. COMPILER c NAME n: with another compiler than that of the build, as compile_fail.<file>.<n>.
function(rheo_add_compile_fail_test file)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "WITHIN;COMPILER;NAME" "")
  cmake_path(GET file STEM stem)
  set(more "")
  if(arg_WITHIN)
    set(more -DWITHIN=${arg_WITHIN})
  endif()
  set(compiler "${CMAKE_CXX_COMPILER}")
  if(arg_COMPILER)
    set(compiler "${arg_COMPILER}")
    string(APPEND stem ".${arg_NAME}")
  endif()
  set(flags -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
    -I${PROJECT_SOURCE_DIR}/include -isystem ${RHEO_RANGE_V3_INCLUDE} ${arg_UNPARSED_ARGUMENTS})
  if(RHEO_RANGE_V3_INCLUDE STREQUAL "/usr/include")
    list(REMOVE_ITEM flags -isystem /usr/include)
  endif()
  add_test(NAME compile_fail.${stem} COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${compiler}" "-DFLAGS=${flags}"
    "-DFILE=${file}" ${more} -P "${rheo_cmake_folder}/compile_fail.cmake")
  rheo_limit(compile_fail.${stem} 240 compile_fail)
endfunction()
