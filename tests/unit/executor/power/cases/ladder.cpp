// SPDX-License-Identifier: Apache-2.0
// By whose permission clocks are set: the sentence says it, the way down is taken when it must be, and every rung that was
// there is a way back.
#include "executor/power/permission/ladder.hpp"

#include "executor/power/devices/nvml_device.hpp"
#include "executor/power/devices/zeusd.hpp"
#include "support/catch.hpp"
#include "unit/executor/power/standin_folder.hpp"
#include "unit/executor/power/zeusd_standin.hpp"

using namespace rheo;
using namespace rheo::power;
using Catch::Matchers::ContainsSubstring;

namespace {

any_power_device gpu(char const* which = "0") { return any_power_device{*nvml_device::open(*nvml_library::load(RHEO_STANDIN_NVML), which)}; }

zeusd_standin::reply good(std::string const& line, std::string const&) { return zeusd_standin::with_two_gpus(line); }

/// All three rungs for the first GPU; the site's command leaves its request in a file.
ladder_config all_three(standin_folder const& folder, std::string const& socket)
{
    return {.zeusd = socket,
            .pci_address = "0000:01:00.0",
            .lock_command = "echo {device} {mhz} >> " + (folder.path / "site").string(),
            .restore_command = "echo {device} back >> " + (folder.path / "site").string()};
}

}  // namespace

TEST_CASE("ladder: highest working rung, look touches nothing")
{
    standin_folder const folder;
    zeusd_standin const zeusd{(folder.path / "z.sock").string(), good};
    auto const looked = choose_rung(gpu(), all_three(folder, zeusd.path()), probing::look);
    CHECK(looked.rung() == clock_rung::direct);
    CHECK(looked.message() == "clocks are set directly");
    CHECK(folder.log().empty());
    auto const touched = choose_rung(gpu(), all_three(folder, zeusd.path()), probing::touch);
    CHECK(touched.rung() == clock_rung::direct);
    CHECK(folder.log() == std::vector<std::string>{"reset 0"});
    CHECK(touched.original().ways.size() == 3);
}

TEST_CASE("ladder: each rung in turn, with its reason")
{
    standin_folder const folder;
    folder.behave("permission 0");
    zeusd_standin const zeusd{(folder.path / "z.sock").string(), good};
    auto config = all_three(folder, zeusd.path());
    std::string const direct = "NVML refuses putting the clock of GPU-standin-0 back: Insufficient Permissions (4)";
    auto second = choose_rung(gpu(), config, probing::touch);
    CHECK(second.rung() == clock_rung::zeusd);
    CHECK(second.message() == "clocks are set through zeusd at " + zeusd.path() + ": " + direct);
    config.zeusd.clear();
    auto third = choose_rung(gpu(), config, probing::touch);
    CHECK(third.rung() == clock_rung::site_command);
    CHECK(third.message() == "clocks are set by the site command '" + config.lock_command + "': " + direct + "; there is no zeusd");
    REQUIRE(third.lock({1005.0}));
    REQUIRE(perform(third.original()));
    CHECK(folder.read("site") == "GPU-standin-0 1005\nGPU-standin-0 back\n");
    config.lock_command.clear();
    auto last = choose_rung(gpu(), config, probing::touch);
    CHECK(last.rung() == clock_rung::advise_only);
    CHECK(last.message() == "clocks are advised only: " + direct + "; there is no zeusd; there is no site command");
    CHECK(last.original().empty());
    CHECK(last.lock({1005.0}).error().message == last.message());
}

TEST_CASE("ladder: lost permission costs a rung, no request")
{
    standin_folder const folder;
    folder.behave("permission_after 2");
    zeusd_standin const zeusd{(folder.path / "z.sock").string(), good};
    auto ladder = choose_rung(gpu(), all_three(folder, zeusd.path()), probing::touch);
    REQUIRE(ladder.lock({static_cast<double>(folder.lowest())}));
    REQUIRE(ladder.lock({static_cast<double>(folder.second())}));
    CHECK(ladder.rung() == clock_rung::zeusd);
    CHECK_THAT(ladder.message(), ContainsSubstring("Insufficient Permissions"));
    CHECK(zeusd.requests().back() == "POST /gpu/set_gpu_locked_clocks?gpu_ids=5&min_clock_mhz=" + std::to_string(folder.second()) +
                                         "&max_clock_mhz=" + std::to_string(folder.second()) + "&block=true");
    // The way back through the driver is closed; the next one is taken.
    CHECK(perform(ladder.original()));
    CHECK(zeusd.requests().back() == "POST /gpu/reset_gpu_locked_clocks?gpu_ids=5&block=true");

    folder.behave("");
    auto other = choose_rung(gpu("1"), all_three(folder, zeusd.path()), probing::look);
    folder.behave("lost 1");
    CHECK(other.lock({static_cast<double>(folder.second())}).error().code == device_error_code::lost);
    CHECK(other.rung() == clock_rung::direct);
}

TEST_CASE("ladder: zeusd: rejections are reported")
{
    standin_folder const folder;
    auto const path = (folder.path / "z.sock").string();
    CHECK(zeusd_device(path, "0000:01:00.0").error().code == device_error_code::not_found);
    {
        zeusd_standin const zeusd{path, good};
        CHECK(*zeusd_device(path, "0000:02:00.0") == 0);
        CHECK(zeusd_device(path, "0000:03:00.0").error().message == "zeusd at " + path + " has no device at 0000:03:00.0");
    }
    {
        zeusd_standin const reader{path, [](std::string const& line, std::string const&) { return zeusd_standin::with_two_gpus(line, "\"gpu-read\""); }};
        CHECK(zeusd_device(path, "0000:01:00.0").error().message == "zeusd at " + path + " does not offer gpu-control");
    }
    {
        zeusd_standin const refuses{path,
                                    [](std::string const&, std::string const&) { return zeusd_standin::reply{403, "{\"errors\": {\"0\": \"no\nno\"}}"}; }};
        auto const refused = zeusd_lock(path, 0, {1005.0});
        CHECK(refused.error().code == device_error_code::no_permission);
        CHECK(refused.error().message == "zeusd at " + path + " refuses 1005 MHz for device 0 with 403: {\"errors\": {\"0\": \"no no\"}}");
    }
    {
        zeusd_standin const off{path, [](std::string const&, std::string const&) { return zeusd_standin::reply{404, ""}; }};
        CHECK(zeusd_device(path, "0000:01:00.0").error().code == device_error_code::not_supported);
    }
    {
        zeusd_standin const other{path, [](std::string const&, std::string const&) { return zeusd_standin::reply{0, "SSH-2.0-x\r\n"}; }};
        CHECK(zeusd_device(path, "0000:01:00.0").error().message == "what answers at " + path + " does not speak HTTP: bad version");
    }
    for (auto const* body : {"", "[]", "{\"gpus\": 3, \"enabled_api_groups\": [\"gpu-control\"]}", "{\"enabled_api_groups\": 7}",
                             "{\"gpus\": [1, {\"id\": \"x\", \"pci_address\": \"0000:01:00.0\"}], \"enabled_api_groups\": [\"gpu-control\"]}"}) {
        CAPTURE(body);
        zeusd_standin const odd{path, [=](std::string const&, std::string const&) { return zeusd_standin::reply{200, body}; }};
        CHECK_FALSE(zeusd_device(path, "0000:01:00.0"));
    }
}

TEST_CASE("ladder: zeusd: its token is sent or asked for")
{
    standin_folder const folder;
    std::string seen;
    zeusd_standin const zeusd{(folder.path / "z.sock").string(), [&](std::string const& line, std::string const& whole) {
                                  seen = whole;
                                  auto reply = zeusd_standin::with_two_gpus(line);
                                  reply.body.replace(reply.body.find("false"), 5, "true");
                                  return reply;
                              }};
    CHECK(zeusd_device(zeusd.path(), "0000:01:00.0").error().message == "zeusd at " + zeusd.path() + " requires a token in ZEUSD_TOKEN");
    ::setenv("ZEUSD_TOKEN", "abc", 1);
    CHECK(*zeusd_device(zeusd.path(), "0000:01:00.0") == 5);
    ::unsetenv("ZEUSD_TOKEN");
    CHECK_THAT(seen, ContainsSubstring("\r\nAuthorization: Bearer abc\r\n"));
}

TEST_CASE("ladder: site command must be complete")
{
    CHECK(*filled_in("set {device} to {mhz} ({mhz})", "GPU-1", {1005.0}) == "set GPU-1 to 1005 (1005)");
    CHECK_FALSE(filled_in("x {device}", "a; rm b", {1.0}));
    standin_folder const folder;
    auto const why = [&](std::string const& lock, std::string const& back) {
        return choose_rung(gpu(), {.direct = false, .lock_command = lock, .restore_command = back}, probing::look).message();
    };
    CHECK_THAT(why("set {device}", "back"), ContainsSubstring("has no {mhz}"));
    CHECK_THAT(why("set {mhz}", ""), ContainsSubstring("has no line that puts clocks back"));
    CHECK_THAT(why("set\t{mhz}", "back"), ContainsSubstring("a tab"));
    CHECK(choose_rung(gpu(), {.direct = false, .lock_command = "exit 9 # {mhz}", .restore_command = "true"}, probing::look).lock({1.0}).error().message ==
          "'exit 9 # 1' ended with 9");
}
