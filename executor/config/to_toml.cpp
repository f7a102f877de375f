// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "executor/config/config_fields.hpp"
#include "executor/config/toml.hpp"
#include "executor/config/toml_value.hpp"

namespace rheo::inline v0 {

namespace {

struct writer {
    std::string text = "schema = 1\n";
    std::string table = {};

    template <class T>
    void operator()(std::string_view key, T const& member, field_limits const&, std::string_view meaning)
    {
        auto const dot = key.rfind('.');
        if (auto const name = key.substr(0, dot); name.substr(0, name.find('.')) != table) {
            table = name;
            text += fmt::format("\n[{}]\n", table);
        }
        text += fmt::format("{:<32}  # {}\n", fmt::format("{} = {}", key.substr(table.size() + 1), toml_value(member)), meaning);
    }
};

struct lister {
    std::vector<config_value> values = {};

    template <class T>
    void operator()(std::string_view key, T const& member, field_limits const&, std::string_view)
    {
        values.push_back({std::string{key}, toml_value(member)});
    }
};

}  // namespace

std::vector<config_value> values_of(run_config const& config)
{
    lister visitor;
    for_each_field(config, visitor);
    return visitor.values;
}

std::string to_toml(run_config const& config)
{
    writer visitor;
    for_each_field(config, visitor);
    return visitor.text;
}

}  // namespace rheo::inline v0
