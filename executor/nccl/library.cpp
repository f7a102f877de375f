// SPDX-License-Identifier: Apache-2.0
#include "executor/nccl/library.hpp"

#include <dlfcn.h>

#include "executor/nccl/error.hpp"
#include "kernels/cuda/library.hpp"

namespace rheo::inline v0::nccl {

namespace {

#ifdef RHEO_NCCL_FILE
constexpr char const* configured_file = RHEO_NCCL_FILE;
#else
constexpr char const* configured_file = nullptr;
#endif

void* opened(std::string const& name)
{
    try {
        return cuda::opened_library(name, name == library::default_name ? configured_file : nullptr, "transport by NCCL is that of");
    } catch (cuda::error const& e) {
        throw error{success, e.what()};
    }
}

}  // namespace

library::library(std::string const& name)
{
    auto* const handle = opened(name);
    auto const take = [&](char const* function, auto*& into) {
        into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(::dlsym(handle, function));
        if (into == nullptr) {
            throw error{success, name + " is no NCCL that can be used: it has no function " + function};
        }
    };
    take("ncclGetVersion", call_.ncclGetVersion);
    take("ncclGetErrorString", call_.ncclGetErrorString);
    take("ncclGetLastError", call_.ncclGetLastError);
    check(call_.ncclGetVersion(&version_), "ncclGetVersion");
    if (version_ < least_version) {
        throw error{success, name + " is NCCL " + version_text(version_) + "; " + version_text(least_version) + " or later is needed"};
    }
    take("ncclGetUniqueId", call_.ncclGetUniqueId);
    take("ncclCommInitRankConfig", call_.ncclCommInitRankConfig);
    take("ncclCommGetAsyncError", call_.ncclCommGetAsyncError);
    take("ncclCommAbort", call_.ncclCommAbort);
    take("ncclGroupStart", call_.ncclGroupStart);
    take("ncclGroupEnd", call_.ncclGroupEnd);
    take("ncclSend", call_.ncclSend);
    take("ncclRecv", call_.ncclRecv);
    take("ncclAllReduce", call_.ncclAllReduce);
}

unique_id library::new_id() const
{
    unique_id made{};
    check(call_.ncclGetUniqueId(&made), "ncclGetUniqueId");
    return made;
}

void library::check(result code, char const* name, comm of) const
{
    if (code == success || code == in_progress) {
        return;
    }
    std::string text = std::string{name} + " failed: " + call_.ncclGetErrorString(code);
    if (char const* const more = call_.ncclGetLastError(of); more != nullptr && *more != '\0') {
        text += std::string{" ("} + more + ')';
    }
    throw error{code, text};
}

std::string version_text(int version)
{
    return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' + std::to_string(version % 100);
}

found_nccl find_nccl(std::string const& name)
{
    try {
        return {library{name}.version(), {}};
    } catch (error const& e) {
        return {0, e.what()};
    }
}

}  // namespace rheo::inline v0::nccl
