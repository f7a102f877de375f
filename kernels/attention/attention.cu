// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention.hpp"

#include "kernels/attention/attention_plain.cuh"
#include "kernels/attention/attention_tiles_backward.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/workspace.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::cuda {

namespace {

template <class Arguments>
void expect_heads(Arguments const& a)
{
    expects(a.heads >= 1 && a.width % a.heads == 0, "the width of attention is a multiple of its heads");
    expects(a.kv_heads >= 0 && (a.kv_heads == 0 || a.heads % a.kv_heads == 0), "heads of keys and values divide those of queries");
    expects(heads_in_model(a), "the heads of an attention are among those of the model");
    expects(a.before.count == 0 || (a.before.count + 1) * a.length <= a.whole, "slices of a sequence lie within it");
    expects(a.width / a.heads <= plain::most_width, "a head of attention on a device has at most 256 elements");
    expects(a.heads <= 65535 && a.batch <= 65535, "attention on a device takes at most 65535 heads and as many sequences");
}

/// Whether tensor cores take these heads: rows of whole 16-byte chunks, at most 128 elements wide.
template <class Arguments, class... Pointers>
bool has_tiles(Arguments const& a, Pointers const*... others)
{
    auto const head_width = a.width / a.heads;
    bool result = tensor_cores_take(head_width) && whole_chunks<bfloat16>(head_width, a.qkv, others...);
    for (std::int64_t s = 0; s < a.before.count; ++s) {
        result = result && whole_chunks<bfloat16>(head_width, a.before.of[static_cast<std::size_t>(s)]);
        if constexpr (requires { a.kv_gradient_before; }) {
            result = result && whole_chunks<bfloat16>(head_width, a.kv_gradient_before.of[static_cast<std::size_t>(s)]);
        }
    }
    return result;
}

extent grid_of(std::int64_t blocks, std::int64_t heads, std::int64_t batch)
{
    return {static_cast<unsigned>(blocks), static_cast<unsigned>(heads), static_cast<unsigned>(batch)};
}

bool drops(dropout const& drop) { return dropout_threshold(drop) != 0; }

template <class Cores, int Width>
void forward_on_tiles(stream queue, attention_forward_arguments<bf16> const& a)
{
    using tiles = forward_tiles<Cores>;
    launch_shape const shape{grid_of(blocks_for(a.length, tiles::queries), a.heads, a.batch), tiles::threads, tiles::template shared_bytes<Width>};
    choose(drops(a.drop), [&](auto dropping) { launch(queue, shape, attention_forward_tiles<Cores, Width, dropping()>, attention_heads{a}); });
}

template <class Cores, int Width>
void backward_on_tiles(stream queue, backward_heads const& heads, query_numbers* numbers)
{
    auto const& a = heads.a;
    launch_shape const of_queries{grid_of(blocks_for(a.length, query_tiles::queries), a.heads, a.batch), query_tiles::threads,
                                  query_tiles::shared_bytes<Width>};
    launch_shape const of_keys{grid_of(heads.seen_blocks(a.length, key_tiles::keys), a.heads / heads.group, a.batch), key_tiles::threads,
                               key_tiles::shared_bytes<Width>};
    choose(drops(a.drop), [&](auto dropping) {
        launch(queue, of_queries, attention_backward_queries<Cores, Width, dropping()>, heads, numbers);
        launch(queue, of_keys, attention_backward_keys<Cores, Width, dropping()>, heads, numbers);
    });
}

/// Calls f with the type of the cores, and 64 or 128.
template <class F>
void on_tiles(tensor_cores by, std::int64_t head_width, F f)
{
    choose(head_width <= 64, [&](auto narrow) {
        std::integral_constant<int, narrow() ? 64 : 128> const width;
        by == tensor_cores::of_warps ? f(of_warps{}, width) : f(of_warpgroups{}, width);
    });
}

}  // namespace

bool has(tensor_cores kind)
{
    if (kind == tensor_cores::of_warps) {
        return true;
    }
    cudaFuncAttributes of{};
    if (cudaFuncGetAttributes(&of, attention_forward_tiles<of_warpgroups, 64, false>) != cudaSuccess) {
        cudaGetLastError();  // no is an answer, not an error of a later call
        return false;
    }
    return of.binaryVersion == 90;
}

template <dtype_policy Policy>
void attention_forward(stream queue, attention_forward_arguments<Policy> const& a, [[maybe_unused]] tensor_cores by)
{
    using T = storage_t<Policy>;
    expect_heads(a);
    if constexpr (Policy == bf16) {
        if (has_tiles(a, a.output)) {
            on_tiles(by, a.width / a.heads, [&](auto cores, auto width) { forward_on_tiles<decltype(cores), width()>(queue, a); });
            return;
        }
    }
    attention_heads const heads{a};
    launch_shape const shape{grid_of(blocks_for(a.length, plain::warps), a.heads, a.batch), plain::threads, plain::shared_bytes(heads.head_width)};
    choose(drops(a.drop), [&](auto dropping) { launch(queue, shape, attention_forward_plain<T, dropping(), attention_forward_arguments<Policy>>, heads); });
}

std::int64_t attention_backward_workspace_bytes(std::int64_t batch, std::int64_t heads, std::int64_t length)
{
    return workspace::counter_bytes + batch * heads * length * static_cast<std::int64_t>(sizeof(query_numbers));
}

template <dtype_policy Policy>
void attention_backward(stream queue, workspace scratch, attention_backward_arguments<Policy> const& a, [[maybe_unused]] tensor_cores by)
{
    using T = storage_t<Policy>;
    using arguments = attention_backward_arguments<Policy>;
    expect_heads(a);
    expects(a.kv_gradient_before.count == a.before.count, "each slice before has gradients of its keys and values");
    expects(scratch.bytes >= attention_backward_workspace_bytes(a.batch, a.heads, a.length), "the workspace is too small for the backward of attention");
    attention_heads const heads{a};
    auto* const numbers = reinterpret_cast<query_numbers*>(static_cast<std::byte*>(scratch.memory) + workspace::counter_bytes);
    if constexpr (Policy == bf16) {
        if (has_tiles(a, a.output_gradient, a.qkv_gradient)) {
            on_tiles(by, a.width / a.heads, [&](auto cores, auto width) { backward_on_tiles<decltype(cores), width()>(queue, heads, numbers); });
            return;
        }
    }
    auto const bytes = plain::shared_bytes(heads.head_width);
    launch_shape const of_queries{grid_of(blocks_for(a.length, plain::warps), a.heads, a.batch), plain::threads, bytes};
    launch_shape const of_keys{grid_of(heads.seen_blocks(a.length, plain::warps), a.heads / heads.group, a.batch), plain::threads, bytes};
    choose(drops(a.drop), [&](auto dropping) {
        launch(queue, of_queries, attention_backward_queries_plain<T, dropping(), arguments>, heads, numbers);
        launch(queue, of_keys, attention_backward_keys_plain<T, dropping(), arguments>, heads, numbers);
    });
}

template void attention_forward(stream, attention_forward_arguments<fp32> const&, tensor_cores);
template void attention_forward(stream, attention_forward_arguments<bf16> const&, tensor_cores);
template void attention_backward(stream, workspace, attention_backward_arguments<fp32> const&, tensor_cores);
template void attention_backward(stream, workspace, attention_backward_arguments<bf16> const&, tensor_cores);

}  // namespace rheo::inline v0::cuda
