# SPDX-License-Identifier: Apache-2.0
# cmake --install: find_package(rheo COMPONENTS library reshard executor), a file for pkg-config, and the program when it is built.
# The component library is headers only and asks for nothing; reshard is a small static library that needs an MPI and nothing else; executor
# brings the static libraries that are linked into programs with a model of their own. Both are for the MPI that they were built with.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/rheo")
set(rheo_has_executor OFF)
set(rheo_has_reshard OFF)

install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(TARGETS rheo_library EXPORT rheo-library)
install(EXPORT rheo-library NAMESPACE rheo:: DESTINATION "${package}")

if(TARGET rheo_reshard)
  set(rheo_has_reshard ON)
  foreach(target reshard mpi)
    set_target_properties(rheo_${target} PROPERTIES EXPORT_NAME ${target})
    install(TARGETS rheo_${target} EXPORT rheo-reshard ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endforeach()
  target_include_directories(rheo_reshard INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/rheo-executor>")
  install(DIRECTORY executor/reshard DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rheo-executor/executor" FILES_MATCHING PATTERN "*.hpp")
  install(FILES executor/mpi/communicator.hpp executor/mpi/error.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rheo-executor/executor/mpi")
  install(EXPORT rheo-reshard NAMESPACE rheo:: DESTINATION "${package}")
endif()
if(TARGET rheo_executor)
  set(rheo_has_executor ON)
  if(RHEO_BUILD_CUDA) # named by its file, see executor/CMakeLists.txt
    install(FILES "$<TARGET_FILE:rheo_kernels_cuda>" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(FILES "$<TARGET_FILE:CUDA::cudart_static>" DESTINATION "${CMAKE_INSTALL_LIBDIR}/rheo") # which NVIDIA's licence lists as redistributable
  endif()
  foreach(target executor executor_cuda kernels compiled)
    set_target_properties(rheo_${target} PROPERTIES EXPORT_NAME ${target})
    install(TARGETS rheo_${target} EXPORT rheo-executor ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endforeach()
  foreach(target executor kernels)
    target_include_directories(rheo_${target} INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/rheo-executor>")
  endforeach()
  install(DIRECTORY executor kernels DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rheo-executor"
    FILES_MATCHING PATTERN "*.hpp" PATTERN executor/cli EXCLUDE PATTERN detail/loops EXCLUDE) # parts of one source file, not headers to include
  install(EXPORT rheo-executor NAMESPACE rheo:: DESTINATION "${package}")
endif()
if(TARGET rheo)
  # The MPI that was chosen, not another one that the loader knows: its libraries may have the same names.
  set_target_properties(rheo_ranks PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS rheo rheo_ranks rheo_guardian) # rheo looks for rheo-ranks beside it, which runs what needs the MPI; so does that for rheo-guardian, which puts clocks back
  if(rheo_reference AND NOT CMAKE_CROSSCOMPILING)
    install(DIRECTORY "${rheo_reference}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" FILES_MATCHING PATTERN "*.1")
    install(DIRECTORY "${rheo_reference}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man5" FILES_MATCHING PATTERN "*.5")
    install(FILES "${rheo_reference}/completion/rheo.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME rheo)
    install(FILES "${rheo_reference}/completion/_rheo" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
    install(FILES "${rheo_reference}/completion/rheo.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
  endif()
  install(PROGRAMS cmake/slurm/train.sbatch DESTINATION "${CMAKE_INSTALL_DATADIR}/rheo/slurm")
  install(PROGRAMS cmake/pbs/train.pbs DESTINATION "${CMAKE_INSTALL_DATADIR}/rheo/pbs")
  install(PROGRAMS cmake/flux/train.flux DESTINATION "${CMAKE_INSTALL_DATADIR}/rheo/flux")
endif()

configure_package_config_file(cmake/rheo-config.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/rheo-config.cmake" INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/rheo-config-version.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/rheo-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/rheo-config-version.cmake" DESTINATION "${package}")
configure_file(cmake/rheo.pc.in "${CMAKE_CURRENT_BINARY_DIR}/rheo.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/rheo.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
