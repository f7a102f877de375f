// SPDX-License-Identifier: Apache-2.0
// Names compared without strings against the strings themselves, on every pair of parameters.
#include "rheo/model/tied.hpp"

#include <string>
#include <vector>

#include "rheo/model/model.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr tensor_shape one{1, 4};

/// A layer of parameters of one shape.
constexpr layer_description named_layer(std::string_view prefix, int ordinal, std::initializer_list<std::string_view> names)
{
    layer_description layer{.name = "named", .prefix = prefix, .ordinal = ordinal};
    for (auto const name : names) {
        add_parameter(layer, {name, one, {0, 1}, false});
    }
    return layer;
}

constexpr bool tied(layer_description const& a, layer_description const& b) { return same_parameter(a, a.parameters[0], b, b.parameters[0]); }
static_assert(tied(named_layer("h.#.", 12, {"w"}), named_layer("", 3, {"h.12.w"})));
static_assert(tied(named_layer("h#", 1, {"2w"}), named_layer("h#", 12, {"w"})));
static_assert(!tied(named_layer("h.#.", 1, {"w"}), named_layer("h.#.", 11, {"w"})));
static_assert(tied(named_layer("", 0, {"w"}), named_layer("", 7, {"w"})));

constexpr bool shapes_count()
{
    auto a = named_layer("", 0, {"w"});
    auto b = a;
    b.parameters[0].shape = {2, 2};
    return tied(a, a) && !tied(a, b);
}
static_assert(shapes_count());

void check_all_pairs(std::vector<layer_description> const& layers)
{
    for (auto const& a : layers) {
        for (auto const& p : a.parameters) {
            for (auto const& b : layers) {
                for (auto const& q : b.parameters) {
                    CHECK(same_parameter(a, p, b, q) == (full_name(a, p) == full_name(b, q) && p.shape == q.shape));
                }
            }
        }
    }
}

}  // namespace

TEST_CASE("tied: two parameters are one when their full names are")
{
    check_all_pairs(gpt_model({.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 12, .tied = true}).layers);
    check_all_pairs(llama_model({.blocks = 3}).layers);
    check_all_pairs({named_layer("h.#.", 0, {"w", "x"}), named_layer("h.#.", 9, {"w", "x"}), named_layer("h.#.", 10, {"w", "x"}),
                     named_layer("h.#.", 100, {"w"}), named_layer("h#", 1, {"w", "0w", "00.w"}), named_layer("h#", 10, {"w", "0w", "0.w"}),
                     named_layer("h#", 0, {"w"}), named_layer("#", 5, {"", "5"}), named_layer("#", 55, {""}),
                     named_layer("", 55, {"55", "5", "h10w", "h.10.w", "h"}), named_layer("h.1#.", 0, {"w"}), named_layer("h.1#5", 0, {"w", ""}),
                     named_layer("h.1#5", 5, {"w", "", "5"}), named_layer("h.1#5", 55, {"w", ""})});
}
