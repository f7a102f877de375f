// SPDX-License-Identifier: Apache-2.0
// The installed executor in a shared library, as an extension of Python would have it.
#include <executor/train/run.hpp>
#include <rheo/version.hpp>

static_assert(RHEO_VERSION_MAJOR == 0);

extern "C" char const* plugin_version() { return RHEO_VERSION; }

extern "C" void plugin_train(MPI_Comm comm, rheo::run_config const* config)
{
    constexpr rheo::gpt_shape shape{.vocabulary = 256, .context = 8, .width = 8, .heads = 2, .blocks = 1};
    using small = rheo::model<rheo::embedding<shape>, rheo::transformer_block<shape>, rheo::classifier<shape>>;
    rheo::leave_job(rheo::run<small>(comm, *config));
}
