#pragma once
// SPDX-License-Identifier: Apache-2.0

// The page without its data: report/assets, put together by cmake/embed_page.cmake when rheo is built.

#include <string_view>

namespace rheo::inline v0 {

extern std::string_view const page_before_data;
extern std::string_view const page_after_data;

}  // namespace rheo::inline v0
