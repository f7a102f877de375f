// SPDX-License-Identifier: Apache-2.0
#include "executor/config/files/grid_file.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "executor/config/config_setting.hpp"
#include "executor/config/toml_parser.hpp"
#include "executor/config/toml_value.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

namespace {

constexpr auto expected_values = "a list of different numbers, texts, or true and false";

std::string as_toml(toml::node const& value)
{
    if (auto const* const words = value.as_string()) {
        return toml_value(words->get());
    }
    std::ostringstream text;
    value.visit([&](auto const& v) { text << v; });
    return text.str();
}

class grid_reader {
public:
    explicit grid_reader(std::string const& file) : file_{file} {}

    sweep_grid read(toml::table const& top)
    {
        auto const* const schema = top.get("schema");
        if (schema == nullptr || schema->value_exact<std::int64_t>() != 1) {
            refuse(schema == nullptr ? static_cast<toml::node const&>(top) : *schema, "schema must be the number 1, the only version of the form of a grid");
        }
        for (auto const& [key, value] : top) {
            if (key.str() == "schema") {
                continue;
            }
            if (!value.is_table()) {
                refuse(value, fmt::format("{} stands in no table; expected [cluster], [pipelines], or a table of the config such as [plan] or [train]",
                                          in_quotes(key.str())));
            }
            read_table(*value.as_table(), std::string{key.str()});
        }
        std::sort(axes_.begin(), axes_.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
        sweep_grid grid;
        std::int64_t points = 1;
        for (auto& [at, axis] : axes_) {
            grid.axes.push_back(std::move(axis));
            points = std::min(most_grid_points + 1, points * static_cast<std::int64_t>(grid.axes.back().values.size()));
        }
        if (grid.axes.empty()) {
            refuse(top, fmt::format("no key has values; expected, for example, [pipelines] stages = [2, 4, 8]"));
        }
        if (points > most_grid_points) {
            refuse_setting(file_, fmt::format("the grid has more than {} points; expected fewer values, or several grids", most_grid_points));
        }
        return grid;
    }

private:
    using position = std::pair<toml::source_index, toml::source_index>;

    [[noreturn]] void refuse(toml::node const& at, std::string const& message) const { refuse_setting(place_of(at), message); }

    std::string place_of(toml::node const& at) const
    {
        auto const line = at.source().begin.line;
        return line > 0 ? fmt::format("{}:{}", file_, line) : file_;
    }

    void read_table(toml::table const& table, std::string const& name)
    {
        for (auto const& [key, value] : table) {
            auto const whole = fmt::format("{}.{}", name, key.str());
            if (value.is_table()) {
                read_table(*value.as_table(), whole);
            } else {
                read_axis(value, whole);
            }
        }
    }

    void read_axis(toml::node const& value, std::string const& key)
    {
        auto const* const list = value.as_array();
        if (list == nullptr || list->empty()) {
            refuse(value, fmt::format("{} must be {}, not {}", key, expected_values, list == nullptr ? type_name(value) : "empty"));
        }
        grid_axis axis{key, {}, place_of(value)};
        for (auto const& element : *list) {
            if (!element.is_number() && !element.is_string() && !element.is_boolean()) {
                refuse(value, fmt::format("{} must be {}, but holds {}", key, expected_values, type_name(element)));
            }
            auto text = as_toml(element);
            if (std::find(axis.values.begin(), axis.values.end(), text) != axis.values.end()) {
                refuse(value, fmt::format("{} must be {}, but holds {} twice", key, expected_values, text));
            }
            axis.values.push_back(std::move(text));
        }
        axes_.emplace_back(position{value.source().begin.line, value.source().begin.column}, std::move(axis));
    }

    std::string const& file_;
    std::vector<std::pair<position, grid_axis>> axes_;
};

}  // namespace

std::int64_t points_of(sweep_grid const& grid)
{
    std::int64_t points = 1;
    for (auto const& axis : grid.axes) {
        points *= static_cast<std::int64_t>(axis.values.size());
    }
    return points;
}

std::vector<std::size_t> values_at(sweep_grid const& grid, std::int64_t point)
{
    std::vector<std::size_t> at(grid.axes.size());
    for (auto k = at.size(); k-- > 0;) {
        auto const count = static_cast<std::int64_t>(grid.axes[k].values.size());
        at[k] = static_cast<std::size_t>(point % count);
        point /= count;
    }
    return at;
}

bool varies(sweep_grid const& grid, std::string_view key)
{
    return std::any_of(grid.axes.begin(), grid.axes.end(), [&](grid_axis const& axis) { return axis.key == key; });
}

sweep_grid parse_grid(std::string_view text, std::string const& name)
{
    toml::table table;
    try {
        table = parse_toml(text);
    } catch (toml_syntax_error const& error) {
        refuse_setting(error.line > 0 ? fmt::format("{}:{}", name, error.line) : name, fmt::format("no valid TOML: {}", error.what()));
    }
    return grid_reader{name}.read(table);
}

}  // namespace rheo::inline v0
