// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/manifest_coverage.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/config/strict_json.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t most_boxes = 4096;  ///< of one tensor's role: they are compared in pairs

}  // namespace

void check_coverage(checkpoint_manifest const& manifest)
{
    std::map<std::pair<std::string_view, tensor_role>, std::vector<index_box>> boxes;
    for (auto const& tensor : manifest.tensors) {
        if (!tensor.of.empty() && std::none_of(manifest.tensors.begin(), manifest.tensors.end(), [&](auto const& t) { return t.name == tensor.of; })) {
            throw json_error{fmt::format("has '{}', a part of '{}', but no such tensor", tensor.name, tensor.of)};
        }
        for (auto const role : kept_roles) {
            if (!boxes.try_emplace({tensor.name, role}).second) {
                throw json_error{fmt::format("has the tensor '{}' twice", tensor.name)};
            }
        }
    }
    for (auto const& file : manifest.files) {
        for (auto const& entry : file.entries) {
            auto const found = boxes.find({entry.tensor, entry.role});
            if (found == boxes.end()) {
                throw json_error{fmt::format("has an entry of '{}' in '{}', but no such tensor", entry.tensor, file.name)};
            }
            found->second.push_back(entry.box);
        }
    }
    for (auto const& tensor : manifest.tensors) {
        for (auto const role : kept_roles) {
            auto const& all = boxes.at({tensor.name, role});
            std::int64_t count = 0;
            bool good = all.size() <= most_boxes;
            for (std::size_t i = 0; good && i < all.size(); ++i) {
                // Within the tensor first: the product of the extents of any other box may overflow.
                good = intersection(all[i], whole(tensor.shape)) == all[i] && elements(all[i]) > 0;
                count += good ? elements(all[i]) : 0;
                for (std::size_t k = 0; good && k < i; ++k) {
                    good = elements(intersection(all[i], all[k])) == 0;
                }
            }
            if (!good || count != (tensor.is_parameter ? elements(tensor.shape) : 0)) {
                throw json_error{fmt::format("does not have each element of '{}' ({}) in exactly one file", tensor.name, name_of(role))};
            }
        }
    }
}

}  // namespace rheo::inline v0
