// SPDX-License-Identifier: Apache-2.0
// NCCL opened at run time: the real one where it is, what is none, and one that is too old.
#include "executor/nccl/library.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>

#include "executor/nccl/communicator.hpp"
#include "executor/nccl/error.hpp"
#include "support/catch.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Why it is refused.
std::string refusal(std::string const& name)
{
    try {
        nccl::library const opened{name};
        return {};
    } catch (nccl::error const& e) {
        CHECK(e.code == nccl::success);
        return e.what();
    }
}

bool are_alike(nccl::unique_id const& a, nccl::unique_id const& b) { return std::equal(std::begin(a.internal), std::end(a.internal), std::begin(b.internal)); }

struct version_of_standin {
    explicit version_of_standin(char const* text) { ::setenv("RHEO_STANDIN_NCCL_VERSION", text, 1); }
    ~version_of_standin() { ::unsetenv("RHEO_STANDIN_NCCL_VERSION"); }
    version_of_standin(version_of_standin const&) = delete;
    version_of_standin& operator=(version_of_standin const&) = delete;
};

#ifdef RHEO_NCCL_LIBRARY
bool has_driver() { return std::filesystem::exists("/proc/driver/nvidia/version") || std::filesystem::exists("/dev/nvidiactl"); }
#endif

}  // namespace

#ifdef RHEO_NCCL_LIBRARY
TEST_CASE("library: the real one opens and makes ids")
{
    nccl::library const real{RHEO_NCCL_LIBRARY};
    CHECK(real.version() >= nccl::library::least_version);
    CHECK(nccl::find_nccl(RHEO_NCCL_LIBRARY).version == real.version());
    CHECK_FALSE(are_alike(real.new_id(), real.new_id()));
}

TEST_CASE("library: the real one refuses a rank without a driver")
{
    if (has_driver()) {
        WARN("there is a driver");
        return;
    }
    auto const real = std::make_shared<nccl::library const>(RHEO_NCCL_LIBRARY);
    try {
        nccl::communicator const alone{real, real->new_id(), 1, 0};
        for (int k = 0; k < 1000 && !alone.settled(); ++k) {
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        }
        FAIL("a communicator came up without a driver, or was not refused");
    } catch (nccl::error const& e) {
        CHECK(e.code == nccl::unhandled_cuda_error);
        CHECK_THAT(e.what(), ContainsSubstring(" failed: unhandled cuda error"));
    }
}
#endif

TEST_CASE("library: a name that does not exist is an error")
{
    CHECK_THAT(refusal("libno-such-nccl.so.2"), ContainsSubstring("NCCL is that of libno-such-nccl.so.2, which cannot be opened: libno-such-nccl.so.2"));
    auto const none = nccl::find_nccl("libno-such-nccl.so.2");
    CHECK(none.version == 0);
    CHECK_THAT(none.error_if_none, ContainsSubstring("libno-such-nccl.so.2"));
}

TEST_CASE("library: one without its functions is refused")
{
    CHECK(refusal("libm.so.6") == "libm.so.6 is no NCCL that can be used: it has no function ncclGetVersion");
}

TEST_CASE("library: an older version is refused")
{
    {
        version_of_standin const old{"22000"};
        CHECK(refusal(RHEO_STANDIN_NCCL) == RHEO_STANDIN_NCCL " is NCCL 2.20.0; 2.27.3 or later is needed");
    }
    version_of_standin const least{"22703"};
    CHECK(refusal(RHEO_STANDIN_NCCL).empty());
}

TEST_CASE("library: the stand-in makes ids that differ")
{
    nccl::library const standin{RHEO_STANDIN_NCCL};
    CHECK(standin.version() == 22809);
    CHECK_FALSE(are_alike(standin.new_id(), standin.new_id()));
}
