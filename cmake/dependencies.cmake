# SPDX-License-Identifier: Apache-2.0
# Finds what kernels and executor stand on. Makes rheo::blas and rheo::mpi when they are there and sets
#   RHEO_BUILD_KERNELS, RHEO_BUILD_EXECUTOR   what is built
#   RHEO_MPIRUN, RHEO_ULFM                    the launcher; whether it survives the loss of a rank
include(able_mpi)
find_package(Threads REQUIRED)

find_path(RHEO_RANGE_V3_INCLUDE range/v3/version.hpp)

set(RHEO_BUILD_KERNELS OFF)
set(RHEO_BUILD_EXECUTOR OFF)
set(RHEO_ULFM OFF)
set(RHEO_MPIRUN "")
set(RHEO_MPI_VERDICT "not looked for")

if(RHEO_EXECUTOR)
  find_package(ZLIB QUIET) # unpacks traces that gzip has packed; without it they are refused
  # Debian's thread build by its own folder first: the alternative behind the plain name may be another BLAS.
  find_path(RHEO_BLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-pthread openblas)
  find_library(RHEO_BLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
  if(RHEO_BLAS_INCLUDE AND RHEO_BLAS_LIBRARY)
    add_library(rheo_blas INTERFACE)
    add_library(rheo::blas ALIAS rheo_blas)
    target_include_directories(rheo_blas SYSTEM INTERFACE "${RHEO_BLAS_INCLUDE}")
    target_link_libraries(rheo_blas INTERFACE "${RHEO_BLAS_LIBRARY}" Threads::Threads)
    set(RHEO_BUILD_KERNELS ON)
  endif()

  # The user's own MPI comes first; the set-up puts another into the build folder only when that one is not able.
  set(candidates "${MPI_HOME}")
  if(NOT RHEO_ANY_MPI)
    list(APPEND candidates "$ENV{MPI_HOME}" PATH "${CMAKE_BINARY_DIR}/mpi" "${CMAKE_BINARY_DIR}/../mpi" "${CMAKE_CURRENT_SOURCE_DIR}/build/mpi")
  endif()
  rheo_choose_mpi("${CMAKE_BINARY_DIR}/mpi-verdicts" chosen RHEO_ULFM RHEO_MPI_VERDICT ${candidates})
  if(chosen)
    if(NOT RHEO_MPI_CHOSEN STREQUAL chosen) # FindMPI keeps its first answer: forget it when the MPI is another one
      get_cmake_property(cached CACHE_VARIABLES)
      foreach(name IN LISTS cached)
        if(name MATCHES "^MPI(EXEC)?_" AND NOT name STREQUAL "MPI_HOME")
          unset(${name} CACHE)
        endif()
      endforeach()
      set(RHEO_MPI_CHOSEN "${chosen}" CACHE INTERNAL "")
    endif()
    set(MPI_HOME "${chosen}")
    set(MPI_CXX_SKIP_MPICXX ON)
    set(MPI_CXX_COMPILER "${chosen}/bin/mpicxx")
    find_package(MPI QUIET COMPONENTS CXX)
    if(MPI_CXX_FOUND)
      add_library(rheo_mpi INTERFACE)
      add_library(rheo::mpi ALIAS rheo_mpi)
      target_link_libraries(rheo_mpi INTERFACE MPI::MPI_CXX)
      target_compile_definitions(rheo_mpi INTERFACE RHEO_WITH_ULFM=$<BOOL:${RHEO_ULFM}>)
      set(RHEO_MPIRUN "${chosen}/bin/mpirun")
    endif()
  endif()
  if(TARGET rheo_mpi AND TARGET rheo_blas)
    set(RHEO_BUILD_EXECUTOR ON)
  elseif(NOT RHEO_EXECUTOR STREQUAL "AUTO")
    message(FATAL_ERROR "RHEO_EXECUTOR=${RHEO_EXECUTOR}, but there is no MPI or no OpenBLAS (${RHEO_MPI_VERDICT}); cmake -P cmake/check.cmake sets both up.")
  endif()
endif()
