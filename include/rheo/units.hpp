#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of units/: quantities, conversions, how arguments are refused, tables as text.

#include "rheo/units/csv.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/nearest_name.hpp"
#include "rheo/units/quantity.hpp"
#include "rheo/units/units.hpp"
