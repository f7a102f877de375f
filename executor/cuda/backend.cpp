// SPDX-License-Identifier: Apache-2.0
#include "executor/cuda/backend.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "executor/cuda/compiled_code.hpp"
#include "executor/cuda/device_memory.hpp"
#include "executor/cuda/event_stream.hpp"
#include "executor/cuda/product_table.hpp"
#include "executor/cuda/queue.hpp"
#include "executor/cuda/stage.hpp"
#include "executor/state/resident_state.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/cuda/error.hpp"
#include "kernels/cuda/policy.hpp"
#include "kernels/store/store.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0::cuda {

namespace {

order_of_sums order_if(bool deterministic) { return deterministic ? order_of_sums::fixed : order_of_sums::any; }

cudaDeviceProp properties_of(int device)
{
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    return properties;
}

template <dtype_policy Policy>
class device_backend final : public compute_backend {
public:
    device_backend(int device, dtype state, device_ways const& ways)
        : device_{device}, state_{state}, ways_{ways}, queue_{own_, messages_, cores_of(ways), order_of(ways)}
    {
    }

    dtype_policy policy() const override
    {
        auto all = Policy;
        all.master = state_;
        return all;
    }
    std::string products() const override { return fmt::format("cuBLASLt {}, one sequence of terms", products::version()); }
    std::string kernels() const override
    {
        auto const properties = properties_of(device_);
        return fmt::format("CUDA {}.{}, {} (sm_{}{}), {}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, properties.name, properties.major,
                           properties.minor, RHEO_VERSION);
    }

    std::string attention() const override
    {
        switch (ways_.attention) {
        case attention_by::warps: break;
        case attention_by::warpgroups: return "warpgroups";
        case attention_by::cudnn:
            return fmt::format("cuDNN {}, gradients added in {}", cudnn_attention::version(), ways_.deterministic ? "one order" : "any order");
        }
        return {};
    }

    std::string choose_algorithms(std::span<layer_description const> layers, microbatch_shape shape) override
    {
        for (auto const& product : products_of(layers, shape, Policy.storage)) {
            queue_.by().choose(product);
        }
        workspace_ = std::max(workspace_, workspace_of_products(layers, shape));
        if (auto* const cudnn = queue_.attention_by_cudnn()) {
            for (auto const& one : attentions_of(layers, shape)) {
                workspace_ = std::max(workspace_, cudnn->choose(one));
            }
        }
        return to_text(queue_.by().table());
    }
    bytes workspace_of_kernels() const override { return bytes{workspace_}; }
    void take_over_algorithms(std::string_view chosen) override { queue_.by().adopt(table_from(chosen)); }

    memory& own() override { return own_; }
    memory& messages() override { return messages_; }
    bool has_one_memory() const override { return false; }
    std::string device_address() const override
    {
        char address[32] = {};
        check(cudaDeviceGetPCIBusId(address, sizeof address, device_), "cudaDeviceGetPCIBusId");
        return address;
    }
    int multiprocessors() const override { return properties_of(device_).multiProcessorCount; }
    std::unique_ptr<device_stream> make_stream() override { return std::make_unique<event_stream>(); }

    void copy(void* to, void const* from, std::size_t size) override { queue_.copy(to, from, size); }
    void wait() override { queue_.wait(); }
    void forget_losses() noexcept override { queue_.forget_losses(); }

    std::unique_ptr<stage> make_stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches,
                                      resident_state& state, std::span<recompute_level const> recompute_levels, shard_group const& group) override
    {
        return make_device_stage<Policy>(layers, first, shape, microbatches, state, *this, queue_, recompute_levels, group, ways_.graphs);
    }

    void initialise(initialise_normal_arguments<> const& arguments) override { initialise_normal(queue_.in_order(), arguments); }
    void initialise(initialise_constant_arguments<> const& arguments) override { initialise_constant(queue_.in_order(), arguments); }
    void zero(std::span<std::int64_t> sums) override { exact_zero(queue_.in_order(), std::ssize(sums), sums.data()); }
    void add(exact_add_arguments const& arguments) override { exact_add(queue_.in_order(), arguments); }
    void convert(exact_convert_arguments const& arguments) override { exact_convert(queue_.in_order(), arguments); }
    void zero(std::span<std::int32_t> sums) override { queue_.zero(sums.data(), sums.size_bytes()); }
    void add(exact_rows_add_arguments const& arguments) override { exact_rows_add(queue_.in_order(), arguments); }
    void convert(exact_rows_convert_arguments const& arguments) override { exact_rows_convert(queue_.in_order(), arguments); }
    void store(std::span<float const> parameter, std::span<bfloat16> stored) override
    {
        cuda::store(queue_.in_order(), {.count = std::ssize(stored), .master = parameter.data(), .stored = stored.data()});
    }

    std::optional<bytes> free_memory() const override
    {
        std::size_t free = 0;
        std::size_t all = 0;
        check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
        return bytes{static_cast<std::int64_t>(free)};
    }

    void update(std::span<tensor_update const> tensors, adamw_settings const& settings) override
    {
        if (tensors.empty()) {
            return;
        }
        if constexpr (Policy.storage == dtype::bf16) {
            if (state_ == dtype::bf16) {
                return update_list<bf16_state>(tensors, settings, [](state_array& values) { return values.bfloats().data(); });
            }
        }
        update_list<plain>(tensors, settings, [](state_array& values) { return values.floats().data(); });
    }

    void add_sums_of_squares(std::span<gradient_norm_arguments const> gradients) override
    {
        if (gradients.empty()) {
            return;
        }
        std::vector<norm_tensor> list;
        std::vector<std::int64_t> counts;
        for (auto const& g : gradients) {
            list.push_back({g.count, g.gradient});
            counts.push_back(g.count);
        }
        auto const first = first_blocks(counts);
        if (block_sums_.size() < static_cast<std::size_t>(first_block_.back() + first.back())) {
            fetch_sums();
            block_sums_.resize(std::max(2 * block_sums_.size(), static_cast<std::size_t>(first.back())));
        }
        auto const before = first_block_.back();
        if (list.size() == 1) {  // nothing is copied for it, and nothing waited for
            sums_of_squares_by_block(queue_.in_order(), list.front(), block_sums_.data() + before);
        } else {
            sums_of_squares_by_block(queue_.in_order(), {.tensor_count = std::ssize(list),
                                                         .tensors = queue_.copied(device_queue::place::tensors, std::span{std::as_const(list)}),
                                                         .first_block = queue_.copied(device_queue::place::blocks, std::span{first}),
                                                         .blocks = first.back(),
                                                         .block_sums = block_sums_.data() + before});
        }
        for (std::size_t n = 1; n < first.size(); ++n) {
            first_block_.push_back(before + first[n]);
        }
    }
    std::vector<double> sums_of_squares() override
    {
        fetch_sums();
        return std::exchange(fetched_, {});
    }
    state_digest digest(std::span<digest_arguments const> all) override
    {
        std::int64_t blocks = 0;
        for (auto const& one : all) {
            blocks += digest_blocks(one);
        }
        array<state_digest> sums{own_, static_cast<std::size_t>(blocks)};
        auto* next = sums.data();
        for (auto const& one : all) {
            digest_by_block(queue_.in_order(), one, next);
            next += digest_blocks(one);
        }
        state_digest sum;
        for (auto const& one : copied_from(*this, sums.data(), sums.size())) {
            sum += one;
        }
        return sum;
    }

private:
    /// @param values where the numbers of an array are, in the type that they have in the list
    template <dtype_policy Kept, class Values>
    void update_list(std::span<tensor_update const> tensors, adamw_settings const& settings, Values const& values)
    {
        std::vector<adamw_tensor<Kept>> list;
        std::vector<std::int64_t> counts;
        for (auto const& t : tensors) {
            list.push_back({.count = t.count,
                            .master = values(*t.master),
                            .first_moment = values(*t.first_moment),
                            .second_moment = values(*t.second_moment),
                            .gradient = t.gradient,
                            .weight_decay = static_cast<float>(t.weight_decay),
                            .rounding = t.rounding});
            if constexpr (Kept.storage == dtype::bf16) {
                list.back().parameter = t.stored;
            }
            counts.push_back(t.count);
        }
        auto const first = first_blocks(counts);
        auto const factors = definition::factors_of<float>(settings);
        adamw_list<Kept>(queue_.in_order(), {.tensor_count = std::ssize(list),
                                             .tensors = queue_.copied(device_queue::place::tensors, std::span{std::as_const(list)}),
                                             .first_block = queue_.copied(device_queue::place::blocks, std::span{first}),
                                             .blocks = first.back(),
                                             .factors = queue_.copied(device_queue::place::factors, std::span{&factors, 1})});
    }

    void fetch_sums()
    {
        auto const count = first_block_.size() - 1;
        if (count == 0) {
            return;
        }
        sums_.resize(std::max(sums_.size(), count));
        sums_of_blocks(queue_.in_order(), {.count = static_cast<std::int64_t>(count),
                                           .first_block = queue_.copied(device_queue::place::blocks, std::span{std::as_const(first_block_)}),
                                           .block_sums = block_sums_.data(),
                                           .sums = sums_.data()});
        first_block_.resize(1);
        auto const more = copied_from(*this, sums_.data(), count);
        fetched_.insert(fetched_.end(), more.begin(), more.end());
    }

    static constexpr dtype_policy plain = policy_storing<storage_t<Policy>>;  ///< of what adds to no sums

    static tensor_cores cores_of(device_ways const& ways)
    {
        return ways.attention == attention_by::warpgroups ? tensor_cores::of_warpgroups : tensor_cores::of_warps;
    }
    static std::optional<order_of_sums> order_of(device_ways const& ways)
    {
        return ways.attention == attention_by::cudnn ? std::optional{order_if(ways.deterministic)} : std::nullopt;
    }

    int device_;
    dtype state_;  ///< what the optimizer keeps
    device_ways ways_;
    std::int64_t workspace_ = 0;  ///< of what was chosen
    memory_of_the_device own_{"cudaMalloc"};
    page_locked_memory messages_{"cudaMallocHost"};
    device_queue queue_;
    array<double> block_sums_{own_}, sums_{own_};
    std::vector<std::int64_t> first_block_{0};  ///< of what was added, in block_sums_
    std::vector<double> fetched_{};             ///< the sums of what was added before
};

/// @param driver the CUDA version that it is for, 0 where there is none
std::string no_device_error(cudaError_t code, int driver)
{
    auto const version = [](int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); };
    if (code == cudaErrorInsufficientDriver && driver == 0) {
        return "no NVIDIA driver is loaded";
    }
    if (code == cudaErrorInsufficientDriver) {
        return fmt::format("the NVIDIA driver is for CUDA up to {}, this program for {}", version(driver), version(CUDART_VERSION));
    }
    return code == cudaErrorNoDevice ? "the NVIDIA driver has none, or CUDA_VISIBLE_DEVICES hides them all" : cudaGetErrorString(code);
}

/// The rank's, which is the current one from then on. @pre there is one @throws exit_error when no kernel runs on it
int choose_device(found_devices const& found, int rank_on_node)
{
    auto const device = rank_on_node % static_cast<int>(found.names.size());
    auto const properties = properties_of(device);
    if (auto error = error_of_code(device_codes(RHEO_CUDA_CODE), properties.name, 10 * properties.major + properties.minor); !error.empty()) {
        throw exit_error{exit_code::environment, std::move(error)};
    }
    check(cudaSetDevice(device), "cudaSetDevice");
    return device;
}

/// Whether cuDNN is there and has plans for these that want no more than so many bytes.
bool cudnn_computes(std::span<layer_description const> layers, microbatch_shape shape, bool deterministic, std::size_t most)
{
    try {
        auto const attentions = attentions_of(layers, shape);
        cudnn_attention plans{order_if(deterministic)};
        return std::all_of(attentions.begin(), attentions.end(), [&](auto const& one) { return static_cast<std::size_t>(plans.choose(one)) <= most; });
    } catch (std::runtime_error const&) {  // it is not, or it has none
        return false;
    }
}

}  // namespace

attention_by quickest_attention(dtype_policy policy, int rank_on_node, std::span<layer_description const> layers, microbatch_shape shape, bool deterministic)
{
    auto const found = find_devices();
    if (policy.storage != dtype::bf16 || found.names.empty()) {
        return attention_by::warps;
    }
    choose_device(found, rank_on_node);
    std::size_t free = 0;
    std::size_t all = 0;
    check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    if (cudnn_computes(layers, shape, deterministic, all / 16)) {
        return attention_by::cudnn;
    }
    return has(tensor_cores::of_warpgroups) ? attention_by::warpgroups : attention_by::warps;
}

std::unique_ptr<compute_backend> make_backend(dtype_policy policy, int rank_on_node, device_ways const& ways)
{
    auto const found = find_devices();
    if (found.names.empty()) {
        throw exit_error{exit_code::environment, fmt::format("run.device is cuda, but there is no device: {}", found.error_if_none)};
    }
    auto const device = choose_device(found, rank_on_node);
    if (ways.attention == attention_by::warpgroups && !has(tensor_cores::of_warpgroups)) {
        throw exit_error{
            exit_code::environment,
            fmt::format("run.attention is warpgroup, but {} has none, or the kernels were not compiled for it: that is compute capability 9.0, sm_90a",
                        found.names[static_cast<std::size_t>(device)])};
    }
    if (ways.attention == attention_by::cudnn) {
        if (auto const cudnn = find_cudnn(); cudnn.version.empty()) {
            throw exit_error{exit_code::environment, fmt::format("run.attention is cudnn, but {}", cudnn.error_if_none)};
        }
    }
    auto const make = [&]<dtype_policy Computed>() { return std::make_unique<device_backend<Computed>>(device, policy.master, ways); };
    bool const in_rows = policy.accumulate == dtype::i32;
    if (policy == bf16 || policy == bf16_i32 || policy == bf16_state || policy == bf16_i32_state) {
        return in_rows ? std::unique_ptr<compute_backend>{make.operator()<bf16_i32>()} : make.operator()<bf16>();
    }
    expects(policy == fp32 || policy == fp32_i32, "a device trains in fp32 or bf16 with sums in 64 or 32 bits; a state in bf16 needs bf16");
    return in_rows ? std::unique_ptr<compute_backend>{make.operator()<fp32_i32>()} : make.operator()<fp32>();
}

found_cudnn find_cudnn()
{
    try {
        return {cudnn_attention::version(), {}};
    } catch (error const& e) {
        return {{}, e.what()};
    }
}

std::string compiled_code() { return to_text(device_codes(RHEO_CUDA_CODE)); }

found_devices find_devices()
{
    int count = 0;
    if (auto const code = cudaGetDeviceCount(&count); code != cudaSuccess) {
        cudaGetLastError();
        int driver = 0;
        cudaDriverGetVersion(&driver);
        return {{}, no_device_error(code, driver)};
    }
    found_devices found{{}, count == 0 ? "none was found" : ""};
    for (int d = 0; d < count; ++d) {
        auto const properties = properties_of(d);
        found.names.emplace_back(properties.name);
    }
    return found;
}

}  // namespace rheo::inline v0::cuda
