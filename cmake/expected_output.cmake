# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM= -DEXPECTED= -P expected_output.cmake: the program ends with 0 and prints exactly the expected text.
cmake_minimum_required(VERSION 3.25)
if(NOT EXISTS "${EXPECTED}")
  message(FATAL_ERROR "An example states its output: ${EXPECTED} is missing")
endif()
file(READ "${EXPECTED}" expected)
execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE err TIMEOUT 50)
if(NOT rc EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${rc}\n${out}\n${err}")
endif()
if(NOT out STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${out}\nexpected was\n${expected}")
endif()
