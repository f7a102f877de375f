// SPDX-License-Identifier: Apache-2.0
// Kernels that work row by row give a row, or an element, the same bits in any strip: on the host.
#include "strips.hpp"

#include "kernels/adamw/adamw.hpp"

using namespace rheo;
using namespace support;

namespace {

/// Values in the host's memory, with the face of device::array.
template <class Value>
class host_array {
public:
    explicit host_array(std::vector<Value> values) : values_{std::move(values)} {}
    explicit host_array(std::int64_t count) : values_(size(count), std::numeric_limits<Value>::quiet_NaN()) {}
    Value* data() const { return values_.data(); }
    std::vector<Value> const& host() const { return values_; }
    static constexpr bool margins_kept() { return true; }

private:
    std::vector<Value> mutable values_;
};

struct host_kernels {
    using stored = float;
    template <class Value>
    using array = host_array<Value>;

    tile_pool pool{2};

    void layer_norm_forward(layer_norm_forward_arguments<> const& a) { host::layer_norm_forward(pool, a); }
    void layer_norm_backward_input(layer_norm_backward_input_arguments<> const& a) { host::layer_norm_backward_input(pool, a); }
    void rms_norm_forward(rms_norm_forward_arguments<> const& a) { host::rms_norm_forward(pool, a); }
    void rms_norm_backward_input(rms_norm_backward_input_arguments<> const& a) { host::rms_norm_backward_input(pool, a); }
    void residual_add_forward(residual_add_forward_arguments<> const& a) { host::residual_add_forward(pool, a); }
    void residual_add_backward(residual_add_backward_arguments<> const& a) { host::residual_add_backward(pool, a); }
    void residual_norm_forward(residual_norm_forward_arguments<> const& a) { host::residual_norm_forward(pool, a); }
    void residual_norm_backward(residual_norm_backward_arguments<> const& a) { host::residual_norm_backward(pool, a); }
    void residual_rms_norm_forward(residual_rms_norm_forward_arguments<> const& a) { host::residual_rms_norm_forward(pool, a); }
    void residual_rms_norm_backward(residual_rms_norm_backward_arguments<> const& a) { host::residual_rms_norm_backward(pool, a); }
    void gelu_forward(gelu_forward_arguments<> const& a) { host::gelu_forward(pool, a); }
    void gelu_backward(gelu_backward_arguments<> const& a) { host::gelu_backward(pool, a); }
    void swiglu_forward(swiglu_forward_arguments<> const& a) { host::swiglu_forward(pool, a); }
    void swiglu_backward(swiglu_backward_arguments<> const& a) { host::swiglu_backward(pool, a); }
    void embedding_forward(embedding_forward_arguments<> const& a) { host::embedding_forward(pool, a); }
    void rope(rope_arguments<> const& a) { host::rope(pool, a); }
};

}  // namespace

TEST_CASE("strips: rows have the same bits in any strip")
{
    host_kernels by;
    for (auto const s : {strip_shape{5, 36}, strip_shape{34, 772}, strip_shape{70, 1000}}) {
        check_strips(by, s, 4);
    }
}

TEST_CASE("strips: an update has the same bits in any piece of a tensor")
{
    std::int64_t const count = 40000;
    auto const gradient = normal(count, 1);
    auto const update = [&](std::vector<std::int64_t> const& begin) {
        tile_pool pool{2};
        auto master = normal(count, 2);
        auto first = normal(count, 3);
        auto second = normal(count, 4, 0.1F, 1.0F);
        for (std::size_t i = 0; i + 1 < begin.size(); ++i) {
            host::adamw(pool, {.count = begin[i + 1] - begin[i],
                               .master = master.data() + begin[i],
                               .first_moment = first.data() + begin[i],
                               .second_moment = second.data() + begin[i],
                               .gradient = gradient.data() + begin[i],
                               .weight_decay = 0.1,
                               .settings = {.learning_rate = 1e-3, .step = 3}});
        }
        return std::vector{bits(master), bits(first), bits(second)};
    };
    auto const at_once = update({0, count});
    for (auto const& begin : strips_of(count)) {
        CHECK(update(begin) == at_once);
    }
}
