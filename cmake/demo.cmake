# SPDX-License-Identifier: Apache-2.0
# cmake -P cmake/demo.cmake: set-up, build of the executable, then the main job as examples/demo/demo.cmake drives it.
# -DBUILD=<folder> before -P builds elsewhere.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/setup.cmake")
rheo_setup()
if(NOT RHEO_ULFM)
  message(FATAL_ERROR "The demo kills a rank and the job continues: that needs an MPI with ULFM.")
endif()
rheo_configure_and_build(rheo)

# It defines rheo_demo(<executable> <mpirun> <work folder>), which fails by message(FATAL_ERROR).
include("${RHEO_ROOT}/examples/demo/demo.cmake")
rheo_demo("${RHEO_BINARY}/bin/rheo" "${RHEO_MPI_HOME}/bin/mpirun" "${BUILD}/demo")
