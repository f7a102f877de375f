// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/amount_checks.hpp"

#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>

#include "rheo/units/in_quotes.hpp"

namespace rheo::cli {

namespace {

constexpr double least_rate = 1e-9;
constexpr double most_rate = 1e9;
constexpr double most_mebibytes = 8796093022208.0;  // 2^63 bytes

}  // namespace

CLI::Validator is_mebibytes()
{
    auto const check = [](std::string const& text) {
        double count{};
        bool const is = CLI::detail::lexical_cast(text, count) && count > 0.0 && count < most_mebibytes;
        return is ? std::string{} : fmt::format("{} is no number of MiB above 0 and below {:.0f}, which are 2^63 bytes", in_quotes(text), most_mebibytes);
    };
    return CLI::Validator{check, "POSITIVE"};
}

CLI::Validator is_rate()
{
    auto const check = [](std::string const& text) {
        double rate{};
        bool const is = CLI::detail::lexical_cast(text, rate) && rate >= least_rate && rate <= most_rate;
        return is ? std::string{} : fmt::format("{} is no number of GB/s from {:g}, a byte per second, to {:g}", in_quotes(text), least_rate, most_rate);
    };
    return CLI::Validator{check, fmt::format("FLOAT in [{:g} - {:g}]", least_rate, most_rate)};
}

CLI::Validator as_seconds()
{
    std::map<std::string, double> const units{{"s", 1.0}, {"m", 60.0}, {"h", 3600.0}, {"d", 86400.0}};
    return CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::DEFAULT, "TIME");
}

std::optional<bytes> bytes_of_mebibytes(double count)
{
    return count > 0.0 ? std::optional{bytes{static_cast<std::int64_t>(count * 1048576.0)}} : std::nullopt;
}

}  // namespace rheo::cli
