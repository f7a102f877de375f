# SPDX-License-Identifier: Apache-2.0
# Compile-fail tests can fail: each way in which one must do so is tried.
cmake_minimum_required(VERSION 3.25)
function(verdict name content expected)
  set(file "${WORK}/${name}.cpp")
  string(REPLACE "@" ";" content "${content}")
  file(WRITE "${file}" "${content}")
  execute_process(COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${COMPILER}" "-DFLAGS=-std=c++20;-fsyntax-only" "-DFILE=${file}" -P "${SCRIPT}"
    RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(rc EQUAL 0)
    set(out "passes ${out}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " out "${out}") # the message is wrapped
  if(NOT out MATCHES "${expected}")
    message(SEND_ERROR "${name}: expected \"${expected}\", got\n${out}")
  endif()
endfunction()

set(mistake "#ifdef RHEO_MISTAKE\nstatic_assert(false, \"two and two are four\")@\n#endif\n")
verdict(lines "// expect: two and two are four\n#ifdef RHEO_MISTAKE\nstatic_assert(false, \"two and  \\\", \\\"two are four\")@\n#endif\n" "^passes")
verdict(good "// expect: two and two are four\n${mistake}" "^passes")
verdict(other_sentence "// expect: two and two are five\n${mistake}" "is refused, but not with the sentence")
verdict(no_mistake "// expect: two and two are four\nint x@\n" "compiles with its mistake")
verdict(no_control "// expect: two and two are four\nstatic_assert(false, \"two and two are four\")@\n" "The control")
verdict(no_sentence "${mistake}" "has no line")
