#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of units/: quantities, conversions, how arguments are refused, tables and sentences as text.

#include "rheo/units/csv.hpp"
#include "rheo/units/exit_code.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/fixed_text.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"
#include "rheo/units/quantity.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"
