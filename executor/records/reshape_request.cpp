// SPDX-License-Identifier: Apache-2.0
#include "executor/records/reshape_request.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "executor/config/text_file.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "reshape-";

fs::path request_in(std::string const& folder) { return fs::path{folder} / "reshape.toml"; }

std::vector<std::string> lines_of(fs::path const& path)
{
    std::vector<std::string> lines;
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
    }
    return lines;
}

std::string id_line(std::string const& id) { return "# request " + id; }

/// Turns "plan.tensor = 2" into "plan.tensor=2"; spaces inside of the value stay.
std::string setting_in(std::string const& line)
{
    auto const equals = line.find('=');
    if (equals == std::string::npos) {
        return line;
    }
    auto const first = line.find_first_not_of(" \t");
    auto const end_of_key = line.find_last_not_of(" \t", equals - 1) + 1;
    auto const value = line.find_first_not_of(" \t", equals + 1);
    auto const last = line.find_last_not_of(" \t\r");
    return line.substr(first, end_of_key - first) + '=' + (value == std::string::npos ? std::string{} : line.substr(value, last + 1 - value));
}

}  // namespace

bool has_reshape_request(std::string const& folder)
{
    std::error_code ignored;
    return fs::exists(request_in(folder), ignored);
}

void write_reshape_request(std::string const& folder, std::span<std::string const> settings, std::string const& id)
{
    if (has_reshape_request(folder)) {
        throw exit_error{exit_code::environment,
                         fmt::format("'{}' waits for the job already; ask again when it is answered, or remove it", request_in(folder).string())};
    }
    auto text = id_line(id) + '\n';
    for (auto const& setting : settings) {
        auto const equals = setting.find('=');
        text += fmt::format("{} = {}\n", setting.substr(0, equals), setting.substr(equals + 1));
    }
    write_whole(request_in(folder).string(), text);
}

std::vector<std::string> read_reshape_request(std::string const& folder)
{
    std::vector<std::string> settings;
    for (auto const& line : lines_of(request_in(folder))) {
        auto const first = line.find_first_not_of(" \t\r");
        if (first != std::string::npos && line[first] != '#') {
            settings.push_back(setting_in(line));
        }
    }
    return settings;
}

bool remove_reshape_request(std::string const& folder)
{
    std::error_code ignored;
    return fs::remove(request_in(folder), ignored);
}

void answer_reshape_request(std::string const& folder, reshape_answer const& answer)
{
    auto lines = lines_of(request_in(folder));
    lines.push_back("# " + answer.message);
    std::string text;
    for (auto const& line : lines) {
        text += line + '\n';
    }
    write_whole((fs::path{folder} / fmt::format("{}{}.{}", prefix, answer.step, answer.made ? "done" : "refused")).string(), text);
    remove_reshape_request(folder);
}

std::optional<reshape_answer> find_reshape_answer(std::string const& folder, std::string const& id)
{
    std::error_code error;
    for (auto const& entry : fs::directory_iterator(folder, error)) {
        auto const name = entry.path().filename().string();
        auto const extension = entry.path().extension();
        if (!name.starts_with(prefix) || (extension != ".done" && extension != ".refused")) {
            continue;
        }
        auto const lines = lines_of(entry.path());
        if (lines.size() < 2 || lines.front() != id_line(id)) {
            continue;
        }
        reshape_answer answer{.made = extension == ".done", .message = lines.back().substr(std::min<std::size_t>(2, lines.back().size()))};
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), answer.step);
        return answer;
    }
    return std::nullopt;
}

}  // namespace rheo::inline v0
