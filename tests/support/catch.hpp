#pragma once
// SPDX-License-Identifier: Apache-2.0
// Catch2 in version 2 or 3 under one name. Tests use what both have, spelled as in version 3: Approx without a
// namespace, Catch::Matchers::ContainsSubstring for text.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
namespace Catch::Matchers {
inline auto ContainsSubstring(std::string const& text) { return Contains(text); }
}  // namespace Catch::Matchers
#endif
