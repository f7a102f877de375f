// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_cudnn.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cuda_runtime.h>
#include <cudnn_frontend.h>

#include "kernels/cuda/library.hpp"
#include "rheo/units/expects.hpp"

namespace cudnn_frontend {
[[gnu::weak]] void* cudnn_dlhandle = nullptr;  // what it looks functions up in; a program that uses it as well has one of its own
}

namespace rheo::inline v0::cuda {

namespace fe = cudnn_frontend;

namespace {

void open_library()
{
    static auto* const opened = [] {
        std::string const what = "attention by cuDNN is computed by";
        opened_library("libcudart.so." + std::to_string(CUDART_VERSION / 1000), RHEO_CUDART_FILE,
                       what);  // found by the frontend, which asks for it by its name
        if (fe::cudnn_dlhandle == nullptr) {
            fe::cudnn_dlhandle = opened_library("libcudnn.so." + std::to_string(CUDNN_MAJOR), RHEO_CUDNN_FILE, what);
        }
        return fe::cudnn_dlhandle;
    }();
    static_cast<void>(opened);
}

/// What the frontend is asked for, whose own errors come as values and as exceptions.
template <class F>
void ask(F f, std::string const& what)
{
    fe::error_t said;
    try {
        said = f();
    } catch (std::exception const& e) {
        said = {fe::error_code_t::CUDNN_BACKEND_API_FAILED, e.what()};
    }
    if (said.is_bad()) {
        auto const& text = said.get_message();
        throw error{-1, "cuDNN " + cudnn_attention::version() + " " + what + ": " + text.substr(0, std::min<std::size_t>(text.find('\n'), 300))};
    }
}

/// The tensors of both graphs, by number.
enum tensor : std::int64_t { queries = 1, keys, values, output, log_sum_exp, output_gradient, query_gradient, key_gradient, value_gradient };

/// Where a tensor lies: rows of qkv, rows of the output, or a number for each row of a head.
fe::graph::Tensor_attributes& place(fe::graph::Tensor_attributes& t, tensor which, attention_shape const& s)
{
    t.set_uid(which);
    if (which == log_sum_exp) {
        return t.set_data_type(fe::DataType_t::FLOAT).set_dim({s.batch, s.heads, s.length, 1}).set_stride({s.heads * s.length, s.length, 1, 1});
    }
    bool const of_pairs = which == keys || which == values || which == key_gradient || which == value_gradient;
    bool const of_output = which == output || which == output_gradient;
    auto const step = (s.heads + (of_output ? 0 : 2 * s.kv_heads)) * s.head_width;
    return t.set_dim({s.batch, of_pairs ? s.kv_heads : s.heads, s.length, s.head_width}).set_stride({s.length * step, s.head_width, step, 1});
}

void give(std::shared_ptr<fe::graph::Tensor_attributes> const& t, tensor which, attention_shape const& s) { place(*t, which, s).set_output(true); }

float scale_of(attention_shape const& s) { return 1 / std::sqrt(static_cast<float>(s.head_width)); }

void draw_forward(fe::graph::Graph& graph, attention_shape const& s)
{
    auto const in = [&](tensor which) {
        fe::graph::Tensor_attributes t;
        return graph.tensor(place(t, which, s));
    };
    auto how = fe::graph::SDPA_attributes{}
                   .set_generate_stats(true)
                   .set_attn_scale(scale_of(s))
                   .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                   .set_diagonal_band_right_bound(0);
    auto const [result, statistics] = graph.sdpa(in(queries), in(keys), in(values), how);
    give(result, output, s);
    give(statistics, log_sum_exp, s);
}

void draw_backward(fe::graph::Graph& graph, attention_shape const& s, order_of_sums order)
{
    auto const in = [&](tensor which) {
        fe::graph::Tensor_attributes t;
        return graph.tensor(place(t, which, s));
    };
    auto how = fe::graph::SDPA_backward_attributes{}
                   .set_attn_scale(scale_of(s))
                   .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
                   .set_diagonal_band_right_bound(0)
                   .set_deterministic_algorithm(order == order_of_sums::fixed);
    auto const [of_queries, of_keys, of_values] = graph.sdpa_backward(in(queries), in(keys), in(values), in(output), in(output_gradient), in(log_sum_exp), how);
    give(of_queries, query_gradient, s);
    give(of_keys, key_gradient, s);
    give(of_values, value_gradient, s);
}

}  // namespace

struct cudnn_attention::impl {
    struct plans {
        fe::graph::Graph forward, backward;
        std::int64_t workspace_bytes;
    };
    struct destroy {
        void operator()(cudnnContext* handle) const { static_cast<void>(fe::detail::destroy_handle(handle)); }
    };

    order_of_sums order;
    std::shared_ptr<fe::DeviceProperties> device = std::make_shared<fe::DeviceProperties>();
    int capability = 0;
    std::map<attention_shape, plans> known{};
    std::unique_ptr<cudnnContext, destroy> handle{};  // made when something is computed

    explicit impl(order_of_sums wanted) : order{wanted} { open_library(); }

    /// Makes a plan of what was drawn. @returns the bytes that it works in
    std::int64_t plan(fe::graph::Graph& graph, attention_shape const& s, char const* pass, std::vector<fe::NumericalNote_t> const& not_these) const
    {
        auto const what = [&] {
            return "has no plan for the " + std::string{pass} + " of attention in bfloat16 over " + std::to_string(s.batch) + " x " + std::to_string(s.length) +
                   " tokens with " + std::to_string(s.heads) + " heads of " + std::to_string(s.head_width) + " elements, " + std::to_string(s.kv_heads) +
                   " of keys and values";
        }();
        std::int64_t workspace_bytes = 0;
        ask([&] { return graph.validate(); }, what);
        ask([&] { return graph.build_operation_graph(); }, what);
        ask([&] { return graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}); }, what);
        graph.deselect_numeric_notes(not_these);
        ask([&] { return graph.check_support(); }, what);
        ask([&] { return graph.build_plans(); }, what);
        ask([&] { return graph.get_workspace_size(workspace_bytes); }, what);
        return workspace_bytes;
    }

    plans& plans_of(attention_shape const& s)
    {
        if (auto const found = known.find(s); found != known.end()) {
            return found->second;
        }
        plans made{};
        for (auto* const graph : {&made.forward, &made.backward}) {
            graph->set_io_data_type(fe::DataType_t::BFLOAT16).set_intermediate_data_type(fe::DataType_t::FLOAT).set_compute_data_type(fe::DataType_t::FLOAT);
            graph->set_device_properties(device).set_sm_version(capability);
        }
        draw_forward(made.forward, s);
        draw_backward(made.backward, s, order);
        std::vector<fe::NumericalNote_t> not_these;
        if (order == order_of_sums::fixed) {
            not_these.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
        }
        auto const of_forward = plan(made.forward, s, "forward", not_these);
        made.workspace_bytes = workspace::counter_bytes + std::max(of_forward, plan(made.backward, s, "backward", not_these));
        return known.emplace(s, std::move(made)).first->second;
    }

    void execute(fe::graph::Graph const& graph, stream queue, workspace scratch, std::int64_t wanted, std::unordered_map<std::int64_t, void*> tensors)
    {
        expects(scratch.bytes >= wanted, "the workspace is too small for cuDNN's attention");
        expects(std::ranges::all_of(tensors, [](auto const& t) { return reinterpret_cast<std::uintptr_t>(t.second) % 16 == 0; }),
                "what cuDNN's attention reads and writes is aligned to 16 bytes");
        if (handle == nullptr) {
            cudnnHandle_t made = nullptr;
            ask(
                [&] {
                    return fe::error_t{fe::detail::create_handle(&made) == CUDNN_STATUS_SUCCESS ? fe::error_code_t::OK : fe::error_code_t::HANDLE_ERROR,
                                       "cudnnCreate"};
                },
                "does not begin");
            handle.reset(made);
        }
        auto const failed = "failed in attention";
        ask(
            [&] {
                return fe::error_t{fe::detail::set_stream(handle.get(), static_cast<cudaStream_t>(queue.handle)) == CUDNN_STATUS_SUCCESS
                                       ? fe::error_code_t::OK
                                       : fe::error_code_t::HANDLE_ERROR,
                                   "cudnnSetStream"};
            },
            failed);
        ask([&] { return graph.execute(handle.get(), tensors, static_cast<std::byte*>(scratch.memory) + workspace::counter_bytes); }, failed);
    }
};

std::string cudnn_attention::version()
{
    open_library();
    auto const number = fe::detail::get_backend_version();
    return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

cudnn_attention::cudnn_attention(order_of_sums order) : impl_{std::make_unique<impl>(order)}
{
    int device = 0;
    cudaDeviceProp properties{};
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    impl_->capability = 10 * properties.major + properties.minor;
    impl_->device->set_device_id(device);
    ask([&] { return impl_->device->build(); }, "does not know this device");
}

cudnn_attention::cudnn_attention(order_of_sums order, described_device const& device) : impl_{std::make_unique<impl>(order)}
{
    impl_->capability = device.capability;
    ask([&] { return impl_->device->deserialize({device.properties.begin(), device.properties.end()}); }, "does not know this device");
}

cudnn_attention::~cudnn_attention() = default;
cudnn_attention::cudnn_attention(cudnn_attention&&) noexcept = default;
cudnn_attention& cudnn_attention::operator=(cudnn_attention&&) noexcept = default;

std::int64_t cudnn_attention::choose(attention_shape const& shape) { return impl_->plans_of(shape).workspace_bytes; }

namespace {

/// Pointers to the parts of rows of qkv, or of their gradients.
template <class T>
std::array<void*, 3> parts_of(T* rows, attention_shape const& s)
{
    auto* const first = const_cast<bfloat16*>(rows);
    auto const width = s.heads * s.head_width;
    return {first, first + width, first + width + s.kv_heads * s.head_width};
}

template <class T>
void* plain(T* pointer)
{
    return const_cast<std::remove_const_t<T>*>(pointer);
}

template <class Arguments>
void expect_whole(Arguments const& a)
{
    expects(a.before.count == 0 && (a.whole == 0 || a.whole == a.length), "cuDNN's attention is over whole sequences");
    expects(dropout_threshold(a.drop) == 0, "cuDNN's attention drops nothing: its random numbers are its own");
}

}  // namespace

void cudnn_attention::forward(stream queue, workspace scratch, attention_forward_arguments<bf16> const& a)
{
    expect_whole(a);
    auto const s = attention_shape::of(a);
    auto& plans = impl_->plans_of(s);
    auto const [q, k, v] = parts_of(a.qkv, s);
    impl_->execute(plans.forward, queue, scratch, plans.workspace_bytes,
                   {{queries, q}, {keys, k}, {values, v}, {output, a.output}, {log_sum_exp, a.log_sum_exp}});
}

void cudnn_attention::backward(stream queue, workspace scratch, attention_backward_arguments<bf16> const& a)
{
    expect_whole(a);
    auto const s = attention_shape::of(a);
    auto& plans = impl_->plans_of(s);
    auto const [q, k, v] = parts_of(a.qkv, s);
    auto const [dq, dk, dv] = parts_of(a.qkv_gradient, s);
    impl_->execute(plans.backward, queue, scratch, plans.workspace_bytes,
                   {{queries, q},
                    {keys, k},
                    {values, v},
                    {output, plain(a.output)},
                    {log_sum_exp, plain(a.log_sum_exp)},
                    {output_gradient, plain(a.output_gradient)},
                    {query_gradient, dq},
                    {key_gradient, dk},
                    {value_gradient, dv}});
}

}  // namespace rheo::inline v0::cuda
