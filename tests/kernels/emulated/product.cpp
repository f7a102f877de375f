// SPDX-License-Identifier: Apache-2.0
// What kernels/cuda/product.cu does by cuBLASLt, in plain loops with sums in float: its "algorithm" is a number that says so. It has no GELU
// for rows that are no multiple of 16 bytes, as cuBLASLt has not.
#include "kernels/cuda/product.hpp"

#include <map>

#include "grid.hpp"
#include "kernels/gelu/gelu.hpp"
#include "rheo/tensor/bfloat16.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::cuda {

namespace {

constexpr std::array<std::uint64_t, 8> plain_loops{1};

float at(dtype element, void const* matrix, std::int64_t i)
{
    return element == dtype::bf16 ? static_cast<float>(static_cast<bfloat16 const*>(matrix)[i]) : static_cast<float const*>(matrix)[i];
}

}  // namespace

struct products::impl {
    std::map<product_shape, std::array<std::uint64_t, 8>> chosen;
};

products::products() : impl_{std::make_unique<impl>()} {}
products::~products() = default;
products::products(products&&) noexcept = default;
products& products::operator=(products&&) noexcept = default;

bool products::multiply(stream queue, workspace room, product_shape const& s, product_operands const& operands)
{
    expects(room.bytes >= workspace::counter_bytes + room_bytes, "the workspace is too small for a product");
    expects(s.has_bias == (operands.bias != nullptr), "a product has a bias or none");
    expects(!s.gelu || (operands.activated != nullptr && s.result == dtype::bf16 && !s.adds), "a product with a GELU has a place for it, is stored in bf16 and adds to nothing");
    if (s.gelu && s.columns % 8 != 0) {
        impl_->chosen.emplace(s, std::array<std::uint64_t, 8>{});
        auto alone = s;
        alone.gelu = false;
        multiply(queue, room, alone, operands);
        return false;
    }
    impl_->chosen.emplace(s, plain_loops);
    emulated::count_launch();
    for (std::int64_t r = 0; r < s.rows; ++r) {
        for (std::int64_t c = 0; c < s.columns; ++c) {
            float sum = 0;
            for (std::int64_t t = 0; t < s.terms; ++t) {
                sum += at(s.element, operands.left, s.left_transposed ? t * s.rows + r : r * s.terms + t) *
                       at(s.element, operands.right, s.right_transposed ? c * s.terms + t : t * s.columns + c);
            }
            auto const i = r * s.columns + c;
            sum += s.adds ? at(s.result, operands.result, i) : 0.0F;
            sum += s.has_bias ? at(s.element, operands.bias, c) : 0.0F;
            if (s.result == dtype::bf16) {
                static_cast<bfloat16*>(operands.result)[i] = bfloat16{sum};
                if (s.gelu) {
                    static_cast<bfloat16*>(operands.activated)[i] = bfloat16{definition::gelu(sum)};
                }
            } else {
                static_cast<float*>(operands.result)[i] = sum;
            }
        }
    }
    return true;
}

std::vector<product_choice> products::table() const
{
    std::vector<product_choice> all;
    for (auto const& [shape, algorithm] : impl_->chosen) {
        all.push_back({shape, algorithm});
    }
    return all;
}

void products::adopt(std::vector<product_choice> const& table)
{
    for (auto const& [shape, algorithm] : table) {
        impl_->chosen[shape] = algorithm;
    }
}

}  // namespace rheo::inline v0::cuda
