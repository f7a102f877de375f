# SPDX-License-Identifier: Apache-2.0
# cmake --install: headers with a package file for find_package(rheo), and the executable when it is built.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(TARGETS rheo_library EXPORT rheo)
install(EXPORT rheo NAMESPACE rheo:: FILE rheo-config.cmake DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/rheo")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/rheo-config-version.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/rheo-config-version.cmake" DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/rheo")
if(TARGET rheo)
  install(TARGETS rheo)
endif()
