#pragma once
// SPDX-License-Identifier: Apache-2.0

// The processor's threads as a backend: everything is done when a call returns, and there is one memory.

#include <utility>
#include <vector>

#include "executor/device/backend.hpp"
#include "kernels/tiles.hpp"

namespace rheo::inline v0 {

class host_backend final : public compute_backend {
public:
    /// @param policy fp32 or fp32_i32
    explicit host_backend(int threads, dtype_policy const& policy = fp32) : pool_{threads}, policy_{policy} {}

    tile_pool& pool() { return pool_; }

    dtype_policy policy() const override { return policy_; }
    std::string products() const override;
    std::string kernels() const override;
    memory& own() override { return host_memory(); }
    memory& messages() override { return host_memory(); }
    bool has_one_memory() const override { return true; }
    void copy(void* to, void const* from, std::size_t size) override;
    void wait() override {}
    std::unique_ptr<stage> make_stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
                                      resident_state& state, std::span<recompute_level const> recompute_levels, shard_group const& group) override;
    void initialise(initialise_normal_arguments<> const& arguments) override;
    void initialise(initialise_constant_arguments<> const& arguments) override;
    void zero(std::span<std::int64_t> sums) override;
    void add(exact_add_arguments const& arguments) override;
    void convert(exact_convert_arguments const& arguments) override;
    void zero(std::span<std::int32_t> sums) override;
    void add(exact_rows_add_arguments const& arguments) override;
    void convert(exact_rows_convert_arguments const& arguments) override;
    void store(std::span<float const> parameter, std::span<bfloat16> stored) override;
    void update(std::span<tensor_update const> tensors, adamw_settings const& settings) override;
    void add_sums_of_squares(std::span<gradient_norm_arguments const> gradients) override;
    std::vector<double> sums_of_squares() override { return std::exchange(sums_of_squares_, {}); }
    state_digest digest(std::span<digest_arguments const> all) override;

private:
    tile_pool pool_;
    dtype_policy policy_;
    std::vector<double> sums_of_squares_;
};

}  // namespace rheo::inline v0
