// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/layer_profile_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

namespace rheo::inline v0 {

result<std::vector<layer_profile>> find_layer_profile(std::string const& path, dtype_policy const& policy)
{
    static std::mutex one_at_a_time;
    static std::map<std::string, std::string> texts;
    std::lock_guard const lock{one_at_a_time};
    auto found = texts.find(path);
    if (found == texts.end()) {
        std::ifstream file{path, std::ios::binary};
        if (!file || !std::filesystem::is_regular_file(path)) {
            return failure{path + ": this profile cannot be read"};
        }
        found = texts.emplace(path, std::string{std::istreambuf_iterator<char>{file}, {}}).first;
    }
    return parse_layer_profile(found->second, path, policy);
}

}  // namespace rheo::inline v0
