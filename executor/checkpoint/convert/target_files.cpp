// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/convert/target_files.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/checkpoint/convert/distributed_checkpoint.hpp"

namespace rheo::inline v0 {

namespace {

constexpr tensor_role kept_roles[] = {tensor_role::parameter, tensor_role::first_moment, tensor_role::second_moment};

std::vector<target_entry> entries_in_role(sub_collection const& place, tensor_role role)
{
    std::vector<target_entry> entries;
    for (auto const& part : place.parts) {
        if (part.roles.has(role)) {
            entries.push_back({part.tensor, role, part.box});
        }
    }
    return entries;
}

/// The parameters of a rank in one file, the moments in another, as training writes them.
void add_checkpoint_files(std::vector<target_file>& files, sub_collection const& place)
{
    auto const rank = place.ranks.front();
    target_file model{fmt::format("model-{}.safetensors", rank.value), rank, entries_in_role(place, tensor_role::parameter)};
    target_file state{fmt::format("state-{}.safetensors", rank.value), rank, entries_in_role(place, tensor_role::first_moment)};
    for (auto const& entry : entries_in_role(place, tensor_role::second_moment)) {
        state.entries.push_back(entry);
    }
    for (auto& file : {&model, &state}) {
        if (!file->entries.empty()) {
            files.push_back(std::move(*file));
        }
    }
}

/// The n-th box of each tensor's role in the n-th file: a file has each key once.
std::vector<std::vector<target_entry>> shards_of(sub_collection const& place)
{
    std::vector<std::vector<target_entry>> shards;
    for (auto const role : kept_roles) {
        std::map<tensor_id, std::size_t> count;
        for (auto const& entry : entries_in_role(place, role)) {
            auto const n = count[entry.tensor]++;
            shards.resize(std::max(shards.size(), n + 1));
            shards[n].push_back(entry);
        }
    }
    return shards;
}

std::vector<std::int64_t> in_file(stored_tensor const& tensor, std::vector<std::int64_t> values)
{
    values.erase(values.begin(), values.begin() + (tensor.about.shape.dimensions - tensor.dimensions));
    return values;
}

}  // namespace

std::vector<target_file> target_files(array_layout const& dealt, stored_form form)
{
    std::vector<target_file> files;
    if (form == stored_form::checkpoint) {
        for (auto const& place : dealt.places) {
            add_checkpoint_files(files, place);
        }
        return files;
    }
    std::vector<std::vector<std::vector<target_entry>>> shards;
    std::size_t most = 1;
    for (auto const& place : dealt.places) {
        shards.push_back(shards_of(place));
        most = std::max(most, shards.back().size());
    }
    for (std::size_t p = 0; p < shards.size(); ++p) {
        for (std::size_t n = 0; n < shards[p].size(); ++n) {
            files.push_back(
                {fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", p + 1, n + 1, most), dealt.places[p].ranks.front(), std::move(shards[p][n])});
        }
    }
    return files;
}

std::string header_of(target_file const& file, stored_state const& state, stored_form form, std::vector<safetensors_entry>& entries)
{
    std::map<std::string, std::vector<std::int64_t>> offsets;
    for (auto const& entry : file.entries) {
        auto const& tensor = state.tensors[at(entry.tensor)];
        std::vector<std::int64_t> lengths;
        std::vector<std::int64_t> begins;
        for (int d = 0; d < entry.box.dimensions; ++d) {
            lengths.push_back(length(entry.box[d]));
            begins.push_back(entry.box[d].begin);
        }
        std::string const name{tensor.about.name.view()};
        auto const key = form == stored_form::distributed
                             ? distributed_key(name, entry.role)
                             : entry_name({name, entry.role, to_index_box(entry.box), {}}, {tensor.about.shape[0], tensor.about.shape[1]});
        entries.push_back({key, tensor.dtype[static_cast<std::size_t>(entry.role)], in_file(tensor, lengths), 0, 0});
        offsets.emplace(key, in_file(tensor, begins));
    }
    return format_safetensors(entries, form == stored_form::distributed ? sharding_metadata(offsets) : std::map<std::string, std::string>{});
}

}  // namespace rheo::inline v0
