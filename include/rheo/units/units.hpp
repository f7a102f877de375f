#pragma once
// SPDX-License-Identifier: Apache-2.0

// The units of rheo: what is measured, planned and recorded is always one of these. Times, energies,
// powers and clocks are doubles in SI (clocks in MHz, as every driver speaks of them); bytes and
// floating-point operations are counts. Conversions live here and nowhere else.

#include <cstdint>

#include "rheo/units/quantity.hpp"

namespace rheo::inline v0 {

struct second_unit;
struct joule_unit;
struct watt_unit;
struct megahertz_unit;
struct byte_unit;
struct flop_unit;
struct byte_rate_unit;
struct flop_rate_unit;
struct nanojoule_unit;
struct nanosecond_unit;
struct millisecond_unit;
struct byte_per_nanosecond_unit;

using seconds = quantity<second_unit, double>;
using joules = quantity<joule_unit, double>;
using watts = quantity<watt_unit, double>;
using megahertz = quantity<megahertz_unit, double>;
using nanojoules = quantity<nanojoule_unit, std::int64_t>;  ///< energies that are added up: the same sum in any order
using bytes = quantity<byte_unit, std::int64_t>;
using flops = quantity<flop_unit, std::int64_t>;
using bytes_per_second = quantity<byte_rate_unit, double>;
using flop_rate = quantity<flop_rate_unit, double>;                   ///< per second
using whole_nanoseconds = quantity<nanosecond_unit, std::int64_t>;    ///< the time of models that round
using whole_milliseconds = quantity<millisecond_unit, std::int64_t>;  ///< as logs of clusters count
using bytes_per_nanosecond = quantity<byte_per_nanosecond_unit, double>;

constexpr joules operator*(watts power, seconds time) { return {power.count * time.count}; }
constexpr joules operator*(seconds time, watts power) { return power * time; }
constexpr seconds operator/(bytes size, bytes_per_second rate) { return {static_cast<double>(size.count) / rate.count}; }
constexpr seconds operator/(flops work, flop_rate rate) { return {static_cast<double>(work.count) / rate.count}; }
constexpr watts operator/(joules energy, seconds time) { return {energy.count / time.count}; }

constexpr seconds hours(double count) { return {count * 3600.0}; }
constexpr seconds minutes(double count) { return {count * 60.0}; }
constexpr seconds milliseconds(double count) { return {count * 1e-3}; }
constexpr seconds microseconds(double count) { return {count * 1e-6}; }
constexpr seconds nanoseconds(double count) { return {count * 1e-9}; }
constexpr double in_hours(seconds time) { return time.count / 3600.0; }
constexpr seconds in_seconds(whole_milliseconds time) { return {static_cast<double>(time.count) * 1e-3}; }
constexpr double in_milliseconds(seconds time) { return time.count * 1e3; }
constexpr double in_microseconds(seconds time) { return time.count * 1e6; }

/// The nearest whole number of nanoseconds: what plans count in, because integers add up the same in
/// any order. Halved from a truncated double, a form in which no compiler can fuse two roundings.
constexpr std::int64_t in_whole_nanoseconds(seconds time) { return (static_cast<std::int64_t>(time.count * 2e9) + 1) / 2; }

/// The rate of a link that is sold in GB/s of 2^30 bytes, as ASTRA-sim reads them.
constexpr bytes_per_nanosecond gibibytes_per_second(double count) { return {count * 1073741824.0 / 1e9}; }

/// The nearest whole number of nanojoules, of either sign.
constexpr nanojoules in_whole_nanojoules(joules energy)
{
    auto const halves = static_cast<std::int64_t>(energy.count * 2e9);
    return {(halves + (halves < 0 ? -1 : 1)) / 2};
}

constexpr joules in_joules(nanojoules energy) { return {static_cast<double>(energy.count) * 1e-9}; }

constexpr bytes kibibytes(std::int64_t count) { return {count << 10}; }
constexpr bytes mebibytes(std::int64_t count) { return {count << 20}; }
constexpr bytes gibibytes(std::int64_t count) { return {count << 30}; }
constexpr double in_mebibytes(bytes size) { return static_cast<double>(size.count) / 1048576.0; }

}  // namespace rheo::inline v0
