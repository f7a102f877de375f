// SPDX-License-Identifier: Apache-2.0
#include "runtime/fence.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace rheo::inline v0 {

namespace {

std::string read_all(std::filesystem::path const& file)
{
    std::ifstream in{file};
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// What ranks left that died before they had linked: of generations that have ended, whose file nobody links any more.
void remove_unlinked(std::filesystem::path const& folder, generation_id ended)
{
    constexpr std::string_view prefix = ".after-";
    std::vector<std::filesystem::path> old;
    std::error_code error;
    for (std::filesystem::directory_iterator entry{folder, error}; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
        auto const name = entry->path().filename().string();
        if (!name.starts_with(prefix)) {
            continue;
        }
        std::int32_t of = 0;
        auto const [end, bad] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), of);
        if (bad == std::errc{} && *end == '.' && of < ended.value) {
            old.push_back(entry->path());
        }
    }
    for (auto const& file : old) {
        std::filesystem::remove(file, error);
    }
}

}  // namespace

generation_id last_generation(std::filesystem::path const& folder)
{
    generation_id last{0};
    std::error_code error;
    for (auto const& entry : std::filesystem::directory_iterator{folder, error}) {
        auto const name = entry.path().filename().string();
        if (name.starts_with("after-")) {
            std::int32_t ended = 0;
            auto const [end, bad] = std::from_chars(name.data() + 6, name.data() + name.size(), ended);
            if (bad == std::errc{} && end == name.data() + name.size()) {
                last = std::max(last, generation_id{ended + 1});
            }
        }
    }
    return last;
}

bool link_generation_file(std::filesystem::path const& folder, link_generation const& what, rank_id me)
{
    std::ostringstream text;
    text << "rheo generation " << what.ended.value + 1 << "\nlaunch " << what.launch.value << "\nmembers";
    for (auto const member : what.members) {
        text << ' ' << member.value;
    }
    text << '\n';
    auto const target = folder / ("after-" + std::to_string(what.ended.value));
    auto const temporary = folder / (".after-" + std::to_string(what.ended.value) + "." + std::to_string(me.value));
    {
        std::ofstream out{temporary, std::ios::trunc};
        out << text.str();
        if (!out.flush()) {
            throw folder_error{"cannot write " + temporary.string() + ": " + std::strerror(errno)};
        }
    }
    int const code = ::link(temporary.c_str(), target.c_str());
    int const reason = errno;
    ::unlink(temporary.c_str());
    if (code != 0 && reason != EEXIST) {
        throw folder_error{"cannot link " + target.string() + ": " + std::strerror(reason)};
    }
    bool const ours = code == 0 || read_all(target) == text.str();
    if (ours && me == what.members.front()) {
        remove_unlinked(folder, what.ended);
    }
    return ours;
}

}  // namespace rheo::inline v0
