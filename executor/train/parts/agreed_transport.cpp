// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/agreed_transport.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "executor/nccl/error.hpp"
#include "executor/os/boot_id.hpp"
#include "executor/state/collectives.hpp"

namespace rheo::inline v0 {

namespace {

bool shares_devices(int version)
{
    char const* const enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    return version >= nccl::library::shares_devices_from && enabled != nullptr && std::string_view{enabled} == "1";
}

}  // namespace

nccl_offer offer_nccl(run_config const& config, compute_backend const& backend)
{
    nccl_offer offer;
    if (config.run.transport == transport_choice::mpi || config.run.device == compute_device::cpu) {
        return offer;
    }
    try {
        offer.library = std::make_shared<nccl::library const>();
        offer.device = boot_id() + ' ' + backend.device_address();
        offer.multiprocessors = backend.multiprocessors();
    } catch (nccl::error const& e) {
        offer.why = e.what();
    }
    return offer;
}

transport_answer agree_on_transport(mpi::messenger& messages, run_config const& config, nccl_offer const& mine)
{
    auto const& members = messages.members().members;
    if (config.run.transport == transport_choice::mpi || config.run.device == compute_device::cpu || members.size() == 1) {
        return {};
    }
    auto const versions = all_gather(messages, std::vector<std::int64_t>{mine.library == nullptr ? 0 : mine.library->version()});
    auto const reasons = gather_texts(messages, mine.why);
    auto const devices = gather_texts(messages, mine.device);
    std::map<std::string, rank_id> users;
    for (std::size_t r = 0; r < versions.size(); ++r) {
        auto const rank = members[r].value;
        if (versions[r][0] == 0) {
            return {.reason = fmt::format("on rank {} {}", rank, reasons[r])};
        }
        if (versions[r] != versions[0]) {
            return {.reason = fmt::format("rank {} has NCCL {} and rank {} has NCCL {}: all ranks must have the same", members[0].value,
                                          nccl::version_text(static_cast<int>(versions[0][0])), rank, nccl::version_text(static_cast<int>(versions[r][0])))};
        }
    }
    auto const version = static_cast<int>(versions[0][0]);
    for (std::size_t r = 0; r < devices.size() && !shares_devices(version); ++r) {
        if (auto const [user, is_new] = users.try_emplace(devices[r], members[r]); !is_new) {
            return {.reason = fmt::format("ranks {} and {} share a device, which NCCL {} does not permit (2.30 does when NCCL_MULTI_RANK_GPU_ENABLE is 1)",
                                          user->second.value, members[r].value, nccl::version_text(version))};
        }
    }
    return {.by_nccl = true, .multiprocessors = mine.multiprocessors / static_cast<int>(std::count(devices.begin(), devices.end(), mine.device))};
}

}  // namespace rheo::inline v0
