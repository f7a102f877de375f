#pragma once
// SPDX-License-Identifier: Apache-2.0

// Layouts and plans as types that the compiler checks: a layout type has `static constexpr array_layout layout()`. What is wrong is one
// sentence in the compiler's message, the same as at run time.

#include <concepts>

#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/verify_reshard.hpp"
#include "rheo/units/fixed_text.hpp"

namespace rheo::inline v0 {

template <class Layout>
concept layout_type = requires {
    { Layout::layout() } -> std::same_as<array_layout>;
};

namespace detail {

template <stated Sentence>
struct layout_is_sound {
    static_assert(Sentence.empty(), "rheo: this is no layout; the sentence in the parameter says where and why");
    static constexpr bool passed = Sentence.empty();
};

template <layout_type Layout>
inline constexpr auto layout_sentence = describe(fault(Layout::layout()));

template <layout_type From, layout_type To>
inline constexpr auto reshard_sentence_of = [] {
    reshard_request const request{.from = From::layout(), .to = To::layout()};
    auto const out = try_reshard(request);
    return describe(out.fault ? out.fault : verify(out.plan, request));
}();

template <stated Sentence>
struct reshard_is_proved {
    static_assert(Sentence.empty(), "rheo: this layout does not become that one; the sentence in the parameter says why");
    static constexpr bool passed = Sentence.empty();
};

}  // namespace detail

/// `static_assert(sound_layout<my_layout>)`: each rank once, its boxes disjoint and inside their tensors, and every element at some rank.
template <layout_type Layout>
inline constexpr bool sound_layout =
    detail::layout_is_sound<detail::stated<detail::layout_sentence<Layout>.size>{detail::layout_sentence<Layout>.letters}>::passed;

/// `static_assert(proved_reshard<from, to>)`: a plan between them was made and replayed element by element, by the compiler.
template <layout_type From, layout_type To>
inline constexpr bool proved_reshard =
    detail::reshard_is_proved<detail::stated<detail::reshard_sentence_of<From, To>.size>{detail::reshard_sentence_of<From, To>.letters}>::passed;

}  // namespace rheo::inline v0
