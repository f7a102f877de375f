# SPDX-License-Identifier: Apache-2.0
# The switches of the build, and rheo_warnings: the flags of all of our own code. The kernels add theirs in kernels/CMakeLists.txt.
option(RHEO_TESTS "build the tests and the examples" ${PROJECT_IS_TOP_LEVEL})
option(RHEO_BENCH "build the benchmarks" OFF)
set(RHEO_SANITIZE OFF CACHE STRING "sanitizers: OFF, ON (address and undefined behaviour), thread")
set_property(CACHE RHEO_SANITIZE PROPERTY STRINGS OFF ON thread)
option(RHEO_ANY_MPI "take the MPI of MPI_HOME as it is, also when it does not survive the loss of a rank" OFF)
option(RHEO_WERROR "warnings are errors" OFF)
set(RHEO_EXECUTOR AUTO CACHE STRING "kernels and executor: AUTO (when MPI and BLAS are found), ON, OFF")
set_property(CACHE RHEO_EXECUTOR PROPERTY STRINGS AUTO ON OFF)
set(RHEO_CUDA AUTO CACHE STRING "CUDA kernels: AUTO (when nvcc is found), ON, OFF")
set_property(CACHE RHEO_CUDA PROPERTY STRINGS AUTO ON OFF)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the static libraries go into shared ones, too
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
  endif()
  # -g1 keeps back traces readable and objects small; assertions stay on.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
  find_program(RHEO_CCACHE ccache)
  if(RHEO_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${RHEO_CCACHE}")
  endif()
endif()

add_library(rheo_warnings INTERFACE)
add_library(rheo::warnings ALIAS rheo_warnings)
target_compile_options(rheo_warnings INTERFACE
  -fno-semantic-interposition # as if it were not
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${RHEO_WERROR}>:-Werror>
  # One source line, one rounding: a product and a sum that the compiler may or may not fuse would depend on inlining.
  # Where a fused multiply-add is meant, std::fma says so.
  -ffp-contract=off)
if(RHEO_SANITIZE)
  # At -O1, and without two checks of every access (the address sanitizer sees null, x86 and Arm take any alignment), the
  # build takes a third of the time.
  set(rheo_sanitizers -O1 -fsanitize=address,undefined -fno-sanitize=null,alignment -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(RHEO_SANITIZE STREQUAL "thread")
    set(rheo_sanitizers -O1 -fsanitize=thread -fno-omit-frame-pointer)
  endif()
  target_compile_options(rheo_warnings INTERFACE ${rheo_sanitizers})
  target_link_options(rheo_warnings INTERFACE ${rheo_sanitizers})
endif()
