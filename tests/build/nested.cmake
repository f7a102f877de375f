# SPDX-License-Identifier: Apache-2.0
# Included by the tests that make a build of their own: `jobs`, and run(<command...>), which ends the test when the command fails.
cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command} failed")
  endif()
endfunction()
