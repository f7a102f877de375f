// SPDX-License-Identifier: Apache-2.0
// How clocks are restored, as a value: its text reads back, ways are tried in their order, and what is rejected is reported.
#include "executor/power/guardian/restoration.hpp"

#include <chrono>

#include "executor/power/guardian/shell_line.hpp"
#include "rheo/units/expects.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo::power;

TEST_CASE("restoration: text of a restoration round-trips")
{
    restoration const several{{{{restoration_kind::nvml, "libx.so", "GPU-1"}},
                               {{restoration_kind::write, "/sys/a b", "100"}, {restoration_kind::write, "/sys/c", "200"}},
                               {{restoration_kind::zeusd, "/run/z.sock", "3"}},
                               {{restoration_kind::command, "reset 'a' | b", ""}}}};
    CHECK(restoration_of(to_text(several)) == several);
    CHECK(restoration_of("") == restoration{});
    CHECK_THROWS_AS(to_text({{{{restoration_kind::command, "a\nb", ""}}}}), rheo::precondition_error);
    for (auto const* wrong : {"write", "write\t/a", "wrote\t/a\t1", "write\t/a\t1\t2", "\t\t", " or\n"}) {
        CAPTURE(wrong);
        CHECK_FALSE(restoration_of(wrong));
    }
}

TEST_CASE("restoration: first way that works is taken, only that")
{
    temporary_folder const folder;
    auto const first = folder.write("first", "0");
    auto const second = folder.write("second", "0");
    auto const none = (folder.path / "none" / "file").string();
    CHECK(perform(restoration{}));
    CHECK(perform(restoration{{{{restoration_kind::write, first, "1"}}, {{restoration_kind::write, second, "1"}}}}));
    CHECK(folder.read("first") == "1\n");
    CHECK(folder.read("second") == "0");
    CHECK(perform(restoration{{{{restoration_kind::write, none, "2"}}, {{restoration_kind::write, second, "2"}}}}));
    CHECK(folder.read("second") == "2\n");
    // of a way that fails, the rest is done all the same
    auto const failed = perform(restoration{{{{restoration_kind::write, none, "3"}, {restoration_kind::write, first, "3"}}}});
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == device_error_code::not_found);
    CHECK(failed.error().message == none + " cannot be written: No such file or directory");
    CHECK(folder.read("first") == "3\n");
}

TEST_CASE("restoration: shell line: exit, output, timeout")
{
    temporary_folder const folder;
    CHECK(run_shell_line("true"));
    CHECK(run_shell_line("echo 'said' > '" + folder.path.string() + "/out'"));
    CHECK(folder.read("out") == "said\n");
    CHECK(run_shell_line("echo may not >&2; exit 3").error().message == "'echo may not >&2; exit 3' ended with 3: may not");
    CHECK(run_shell_line("no-such-command-of-rheo").error().code == device_error_code::not_found);
    auto const begun = std::chrono::steady_clock::now();
    CHECK(run_shell_line("sleep 60 & sleep 60", {0.2}).error().message == "'sleep 60 & sleep 60' did not end in time and was killed");
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds{20});
}
