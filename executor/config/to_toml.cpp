// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "executor/config/config_fields.hpp"
#include "executor/config/toml.hpp"

namespace rheo::inline v0 {

namespace {

std::string toml_text(std::string_view text)
{
    std::string result = "\"";
    for (char const c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (auto const code = static_cast<unsigned char>(c); code < 0x20 || code == 0x7f) {
            result += fmt::format("\\u{:04x}", code);
        } else {
            result += c;
        }
    }
    return result + '"';
}

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
        auto const line = fmt::format("{} = {}", key.substr(table.size() + 1), value(member));
        text += meaning.empty() ? line + '\n' : fmt::format("{:<32}  # {}\n", line, meaning);
    }

    static std::string value(bool v) { return v ? "true" : "false"; }
    static std::string value(recompute_policy v)
    {
        return v == recompute_policy::automatic ? "\"auto\"" : v == recompute_policy::selective ? "\"selective\"" : value(v == recompute_policy::always);
    }
    static std::string value(std::string const& v) { return toml_text(v); }
    static std::string value(per_mille<int const> v) { return value(v.count / 1000.0); }

    template <class T>
        requires std::is_integral_v<T>
    static std::string value(T v)
    {
        return fmt::format("{}", v);
    }

    static std::string value(double v)
    {
        auto const shortest = fmt::format("{}", v);
        return shortest.find_first_of(".en") == std::string::npos ? shortest + ".0" : shortest;
    }

    template <class T>
    static std::string value(std::vector<T> const& list)
    {
        std::string result = "[";
        for (std::size_t i = 0; i < list.size(); ++i) {
            result += (i == 0 ? "" : ", ") + value(list[i]);
        }
        return result + ']';
    }
};

}  // namespace

std::string to_toml(run_config const& config)
{
    writer visitor;
    for_each_field(config, visitor);
    return visitor.text;
}

}  // namespace rheo::inline v0
