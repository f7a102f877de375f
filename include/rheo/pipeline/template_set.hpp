#pragma once
// SPDX-License-Identifier: Apache-2.0

// The templates that are ready, at most one of each size. Which numbers of ranks they cover is a
// theorem about their sizes: see covers.hpp.

#include <vector>

#include "rheo/pipeline/template.hpp"

namespace rheo::inline v0 {

struct template_set_value {
    std::vector<template_value> templates;  ///< ascending by size, sizes distinct

    friend constexpr bool operator==(template_set_value const&, template_set_value const&) = default;
};

}  // namespace rheo::inline v0
