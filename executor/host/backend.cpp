// SPDX-License-Identifier: Apache-2.0
#include "executor/host/backend.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "executor/host/stage.hpp"
#include "kernels/blas.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

std::string host_backend::products() const { return blas_core_type(); }
std::string host_backend::kernels() const { return fmt::format("host, {} {}", __VERSION__, RHEO_VERSION); }

void host_backend::copy(void* to, void const* from, std::size_t size)
{
    if (size != 0) {
        std::memcpy(to, from, size);
    }
}

std::unique_ptr<stage> host_backend::make_stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
                                                resident_state& state, std::span<recompute_level const> recompute_levels, shard_group const& group)
{
    if (policy_.accumulate == dtype::i32) {
        return std::make_unique<host_stage_of<fp32_i32>>(layers, first, shape, microbatches, state, *this, recompute_levels, group);
    }
    return std::make_unique<host_stage>(layers, first, shape, microbatches, state, *this, recompute_levels, group);
}

void host_backend::initialise(initialise_normal_arguments<> const& arguments) { host::initialise_normal(pool_, arguments); }
void host_backend::initialise(initialise_constant_arguments<> const& arguments) { host::initialise_constant(pool_, arguments); }
void host_backend::zero(std::span<std::int64_t> sums) { host::exact_zero(pool_, static_cast<std::int64_t>(sums.size()), sums.data()); }
void host_backend::add(exact_add_arguments const& arguments) { host::exact_add(pool_, arguments); }
void host_backend::convert(exact_convert_arguments const& arguments) { host::exact_convert(pool_, arguments); }
void host_backend::zero(std::span<std::int32_t> sums) { std::fill(sums.begin(), sums.end(), 0); }
void host_backend::add(exact_rows_add_arguments const& arguments) { host::exact_rows_add(pool_, arguments); }
void host_backend::convert(exact_rows_convert_arguments const& arguments) { host::exact_rows_convert(pool_, arguments); }

void host_backend::store(std::span<float const> parameter, std::span<bfloat16> stored)
{
    std::transform(parameter.begin(), parameter.begin() + static_cast<std::ptrdiff_t>(stored.size()), stored.begin(), [](float p) { return bfloat16{p}; });
}

void host_backend::update(std::span<tensor_update const> tensors, adamw_settings const& settings)
{
    for (auto const& t : tensors) {
        expects(t.stored == nullptr, "the host stores parameters as they are");
        host::adamw(pool_, {.count = t.count,
                            .master = t.master->floats().data(),
                            .first_moment = t.first_moment->floats().data(),
                            .second_moment = t.second_moment->floats().data(),
                            .gradient = t.gradient,
                            .weight_decay = t.weight_decay,
                            .settings = settings});
    }
}

void host_backend::add_sums_of_squares(std::span<gradient_norm_arguments const> gradients)
{
    for (auto const& g : gradients) {
        sums_of_squares_.push_back(host::sum_of_squares(pool_, g));
    }
}

state_digest host_backend::digest(std::span<digest_arguments const> all)
{
    state_digest sum;
    for (auto const& one : all) {
        sum += host::digest(one);
    }
    return sum;
}

}  // namespace rheo::inline v0
