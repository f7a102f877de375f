# SPDX-License-Identifier: Apache-2.0
# The main job as a demonstration: see demo.sh.
set(RHEO_DEMO_FOLDER "${CMAKE_CURRENT_LIST_DIR}")

# rheo_demo(<executable> <mpirun> <work folder>): fails by message(FATAL_ERROR).
function(rheo_demo executable mpirun work)
  execute_process(COMMAND sh "${RHEO_DEMO_FOLDER}/demo.sh" "${executable}" "${mpirun}" "${work}" RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "The demo failed.")
  endif()
endfunction()
