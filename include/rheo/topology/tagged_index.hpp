#pragma once
// SPDX-License-Identifier: Apache-2.0

// Who and where: an index with a tag. A stage is not a rank and neither is a microbatch, so mixing
// them up does not compile. An index is ordered, counts from zero and says its number by `value`.

#include <compare>
#include <cstddef>
#include <cstdint>

#include "rheo/version.hpp"

namespace rheo::inline v0 {

template <class Tag, class Rep = std::int32_t>
struct tagged_index {
    Rep value{};

    friend constexpr auto operator<=>(tagged_index, tagged_index) = default;
    constexpr tagged_index& operator++()
    {
        ++value;
        return *this;
    }
};

/// The position of an index in an array.
template <class Tag, class Rep>
constexpr std::size_t at(tagged_index<Tag, Rep> i)
{
    return static_cast<std::size_t>(i.value);
}

struct rank_tag;
struct node_tag;
struct pipeline_tag;
struct stage_tag;
struct layer_tag;
struct op_tag;
struct tensor_tag;
struct use_tag;
struct microbatch_tag;
struct step_tag;
struct generation_tag;
struct attempt_tag;

using rank_id = tagged_index<rank_tag>;  ///< a process, by its number at launch; it never changes
using node_id = tagged_index<node_tag>;
using pipeline_id = tagged_index<pipeline_tag>;
using stage_id = tagged_index<stage_tag>;            ///< within a pipeline, counted from the input
using layer_id = tagged_index<layer_tag>;            ///< within the model
using op_id = tagged_index<op_tag>;                  ///< within a layer, of the unfused list
using tensor_id = tagged_index<tensor_tag>;          ///< within the model's collection
using use_id = tagged_index<use_tag>;                ///< an (operation, parameter) pair of the model
using microbatch_id = tagged_index<microbatch_tag>;  ///< within a step
using step_id = tagged_index<step_tag, std::int64_t>;
using generation_id = tagged_index<generation_tag>;  ///< counts the memberships of a job
using attempt_id = tagged_index<attempt_tag>;        ///< counts the tries of a step

}  // namespace rheo::inline v0
