#pragma once
// SPDX-License-Identifier: Apache-2.0
// The rules of the tree as functions of a file's path and text, so that the test can also try them on texts that break them.
#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tree {

// The order is the architecture: a folder includes only itself and those before it.
inline constexpr std::array folders{
    "units",    "topology", "tensor",  "model", "schedule", "partition", "energy",  "reshard",
    "pipeline", "plan",     "recover", "trace", "simulate", "analyze",   "planner", "job",
};

// The same for the floors of include/rheo/schedule.
inline constexpr std::array schedule_floors{"core", "check", "transform", "search", "families", "draw"};

// For those of include/rheo/energy.
inline constexpr std::array energy_floors{"profile", "frontier", "clocks"};

// For those of include/rheo/simulate; headers beside them may include any.
inline constexpr std::array simulate_floors{"network", "cluster", "collectives", "goodput", "chakra", "played_step"};

// And for the rooms of executor/.
inline constexpr std::array rooms{
    "os",   "mpi",  "reshard",    "power",     "config", "data",    "text",   "device", "transport", "nccl",  "state", "stage",
    "host", "cuda", "checkpoint", "inference", "plan",   "records", "clocks", "faults", "report",    "train", "cli",
};

// Most files of one folder, without those below it.
inline constexpr std::size_t most_files = 30;

template <std::size_t N>
std::optional<std::size_t> place_in(std::array<char const*, N> const& order, std::string_view folder)
{
    auto const found = std::find(order.begin(), order.end(), folder);
    return found == order.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - order.begin()));
}

inline std::optional<std::size_t> place_of(std::string_view folder) { return place_in(folders, folder); }

// The n-th folder of a path: "b" is the first of "a/b/c.hpp" after the prefix "a/"; empty when there is none.
inline std::string folder_after(std::string_view path, std::string_view prefix)
{
    if (path.substr(0, prefix.size()) != prefix) {
        return "";
    }
    auto const rest = path.substr(prefix.size());
    auto const slash = rest.find('/');
    return slash == std::string_view::npos ? "" : std::string(rest.substr(0, slash));
}

// What a file may not include because it stands on a higher floor; `prefix` is how paths below the floors begin.
template <std::size_t N>
void complain_about_floors(std::array<char const*, N> const& order, std::string_view prefix, std::string const& path, std::string const& include,
                           std::string const& at, std::vector<std::string>& complaints)
{
    auto const mine = folder_after(path, prefix);
    auto const theirs = folder_after(include, prefix);
    if (mine.empty() || theirs.empty()) {
        return;
    }
    auto const own = place_in(order, mine);
    auto const place = place_in(order, theirs);
    if (own && (!place || *place > *own)) {
        complaints.push_back(at + mine + " may not include " + include);
    }
}

inline std::vector<std::string> lines_of(std::string const& text)
{
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

// The line without its comment and without the text in quotation marks.
inline std::string code_of(std::string const& line)
{
    std::string code;
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (quoted && line[i] == '\\') {
            ++i;
        } else if (line[i] == '"') {
            quoted = !quoted;
            code += '"';
        } else if (!quoted && line[i] == '/' && i + 1 < line.size() && line[i + 1] == '/') {
            break;
        } else if (!quoted) {
            code += line[i];
        }
    }
    return code;
}

// "units/energy.hpp" from #include <rheo/units/energy.hpp> or "rheo/...", other includes as they are.
inline std::optional<std::string> included(std::string const& line)
{
    static std::regex const form(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
    std::smatch match;
    if (std::regex_search(line, match, form)) {
        return match[1].str();
    }
    return std::nullopt;
}

inline bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }
inline bool ends(std::string_view text, std::string_view with) { return text.size() >= with.size() && text.substr(text.size() - with.size()) == with; }

// The version and the oldest compilers: macros, which every header may include.
inline constexpr std::string_view version_header = "version.hpp";

// Path relative to include/rheo without a slash: an umbrella.
inline bool umbrella(std::string_view path) { return path.find('/') == std::string_view::npos && path != version_header; }

inline void complain_about_opening(std::vector<std::string> const& lines, std::vector<std::string>& complaints)
{
    if (lines.size() < 3 || lines[0] != "#pragma once") {
        complaints.push_back("the first line is not #pragma once");
    } else if (lines[1] != "// SPDX-License-Identifier: Apache-2.0") {
        complaints.push_back("the second line is not the SPDX line");
    } else {
        std::size_t i = 2;
        while (i < lines.size() && (lines[i].empty() || lines[i] == "//")) {
            ++i;
        }
        if (i == lines.size() || !starts(lines[i], "//")) {
            complaints.push_back("there is no opening paragraph: what this is and why it is so");
        }
    }
    if (lines.size() > 400) {
        complaints.push_back("it has more than 400 lines");
    }
}

// A header of include/rheo; path is relative to that folder.
inline std::vector<std::string> complaints_about_header(std::string const& path, std::string const& text)
{
    std::vector<std::string> complaints;
    auto const lines = lines_of(text);
    complain_about_opening(lines, complaints);
    if (path == version_header) {
        return complaints;
    }
    auto const folder = path.substr(0, path.find('/'));
    auto const own = place_of(folder);
    bool const is_umbrella = umbrella(path);
    if (!is_umbrella && !own) {
        complaints.push_back("the folder " + folder + " has no place in the order");
        return complaints;
    }
    if (folder == "schedule" && !place_in(schedule_floors, folder_after(path, "schedule/"))) {
        complaints.push_back("a header of schedule/ stands on one of its floors: core, check, transform, search, families, draw");
    }
    static std::regex const foreign(R"(^(mpi|nccl|cuda|cublas|fmt/|nlohmann/|toml|CLI/|unistd|sys/|boost/))");
    static std::regex const banned(
        R"(\bvirtual\b|^\s*#\s*define\b|\bstd::abort\b|\bstd::exit\b|\bstd::cout\b|\bstd::cerr\b|\bprintf\s*\(|\babort\s*\(|\bexit\s*\()");
    for (std::size_t i = 0; i < lines.size(); ++i) {
        auto const at = "line " + std::to_string(i + 1) + ": ";
        if (auto const what = included(lines[i])) {
            if (starts(*what, "rheo/") && umbrella(what->substr(5)) && path != "rheo.hpp") {
                complaints.push_back(at + "includes the umbrella " + *what);
            } else if (starts(*what, "rheo/") && !umbrella(what->substr(5)) && what->substr(5) != version_header) {
                auto const theirs = what->substr(5, what->find('/', 5) - 5);
                auto const place = place_of(theirs);
                if (!place || (own && *place > *own)) {
                    complaints.push_back(at + folder + " may not include " + *what);
                }
                complain_about_floors(schedule_floors, "rheo/schedule/", "rheo/" + path, *what, at, complaints);
                complain_about_floors(energy_floors, "rheo/energy/", "rheo/" + path, *what, at, complaints);
                complain_about_floors(simulate_floors, "rheo/simulate/", "rheo/" + path, *what, at, complaints);
                if (is_umbrella && theirs + ".hpp" != path) {
                    complaints.push_back(at + "the umbrella " + path + " may not include " + *what);
                }
            } else if (!starts(*what, "rheo/") && ends(*what, ".hpp") && !starts(*what, "range/v3/")) {
                complaints.push_back(at + "includes " + *what + " by another path than <rheo/...>");
            } else if (*what == "range/v3/all.hpp") {
                complaints.push_back(at + "takes all of range-v3 instead of single headers");
            } else if (std::regex_search(*what, foreign)) {
                complaints.push_back(at + "the library knows no " + *what);
            }
        } else if (auto const code = code_of(lines[i]); std::regex_search(code, banned)) {
            complaints.push_back(at + "not in the library: " + lines[i]);
        } else if (is_umbrella && !code.empty() && code.find_first_not_of(" \t") != std::string::npos && !starts(code, "#pragma once")) {
            complaints.push_back(at + "an umbrella only includes");
        }
    }
    if (!is_umbrella && text.find("namespace rheo::inline v0") == std::string::npos) {
        complaints.push_back("it does not open namespace rheo::inline v0");
    }
    return complaints;
}

// The name of a test says which module claims what in one line of output: `module: claim`.
inline bool names_a_test_badly(std::string const& line)
{
    static std::regex const test(R"re(^(?:TEMPLATE_)?TEST_CASE\("((?:[^"\\]|\\.)*)")re");
    static std::regex const form(R"(^[A-Za-z0-9_.][A-Za-z0-9_. ]*: .+)");
    std::smatch match;
    return std::regex_search(line, match, test) && (match.length(1) > 60 || !std::regex_match(match.str(1), form));
}

// Any other source of ours: executor, kernels, examples, bench, tests.
inline std::vector<std::string> complaints_about_source(std::string const& path, std::string const& text)
{
    std::vector<std::string> complaints;
    auto const lines = lines_of(text);
    if (ends(path, ".hpp")) {
        complain_about_opening(lines, complaints);
    } else if (lines.empty() || lines[0] != "// SPDX-License-Identifier: Apache-2.0") {
        complaints.push_back("the first line is not the SPDX line");
    }
    bool const program = starts(path, "executor/") || starts(path, "kernels/");
    if (starts(path, "executor/") && !place_in(rooms, folder_after(path, "executor/"))) {
        complaints.push_back("it stands in no room of executor/ that has a place in the order");
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (names_a_test_badly(lines[i])) {
            complaints.push_back("line " + std::to_string(i + 1) + ": a test is named `module: claim`, in at most 60 characters");
        }
        auto const what = included(lines[i]);
        if (what && program && starts(*what, "rheo/") && umbrella(what->substr(5))) {
            complaints.push_back("line " + std::to_string(i + 1) + ": includes the umbrella " + *what);
        }
        if (what && starts(path, "executor/")) {
            auto const at = "line " + std::to_string(i + 1) + ": ";
            complain_about_floors(rooms, "executor/", path, *what, at, complaints);
            if (!starts(*what, "executor/") && place_in(rooms, what->substr(0, what->find('/'))) && what->find('/') != std::string::npos) {
                complaints.push_back(at + "includes " + *what + " by another path than executor/...");
            }
        }
    }
    static std::regex const example(R"(^examples/\d+[^/]*\.cpp$)");
    if (std::regex_search(path, example) && lines.size() > 60) {
        complaints.push_back("an example has at most 60 lines");
    }
    return complaints;
}

}  // namespace tree
