// SPDX-License-Identifier: Apache-2.0
// A request over a Unix socket: replies in the forms that a server may choose, servers that do not answer, and paths where there is none.
#include "executor/power/devices/socket_http.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <unistd.h>

#include "support/catch.hpp"
#include "unit/executor/power/standin_folder.hpp"
#include "unit/executor/power/zeusd_standin.hpp"

using namespace rheo;
using namespace rheo::power;

namespace {

/// What comes back from a server that sends exactly this text and closes the connection.
device_result<http_reply> reply_to(std::string const& text)
{
    standin_folder const folder;
    zeusd_standin const server{(folder.path / "s.sock").string(), [&](std::string const&, std::string const&) { return zeusd_standin::reply{0, text}; }};
    return request(server.path(), {.method = "POST", .target = "/x?y=1", .token = {}}, seconds{10.0});
}

}  // namespace

TEST_CASE("socket http: a body of a length, in chunks, or to the end")
{
    for (std::string const text :
         {"HTTP/1.1 201 Created\r\nContent-Length: 11\r\n\r\nhello world",
          "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "HTTP/1.0 201 Created\r\n\r\nhello world"}) {
        CAPTURE(text);
        auto const reply = reply_to(text);
        REQUIRE(reply);
        CHECK(reply->status == 201);
        CHECK(reply->body == "hello world");
    }
}

TEST_CASE("socket http: a reply that is cut off or too long fails")
{
    CHECK_FALSE(reply_to("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello world"));
    CHECK_FALSE(reply_to("HTTP/1.1 200 OK\r\nContent-Le"));
    CHECK_FALSE(reply_to(""));
    auto const body = std::string((std::size_t{1} << 20) + 1, 'x');
    CHECK_FALSE(reply_to("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body));
    auto const fits = reply_to("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size() - 1) + "\r\n\r\n" + body.substr(1));
    REQUIRE(fits);
    CHECK(fits->body.size() == body.size() - 1);
}

TEST_CASE("socket http: patience holds for the whole exchange")
{
    standin_folder const folder;
    zeusd_standin const slow{(folder.path / "s.sock").string(), [](std::string const&, std::string const&) {
                                 std::this_thread::sleep_for(std::chrono::milliseconds{600});
                                 return zeusd_standin::reply{200, "late"};
                             }};
    auto const begun = std::chrono::steady_clock::now();
    auto const reply = request(slow.path(), {.method = "GET", .target = "/", .token = {}}, seconds{0.05});
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::milliseconds{500});
    REQUIRE_FALSE(reply);
    CHECK(reply.error().code == device_error_code::failed);
    CHECK(reply.error().message.starts_with("no answer from " + slow.path()));
}

TEST_CASE("socket http: no server differs from no permission")
{
    standin_folder const folder;
    auto const path = (folder.path / "s.sock").string();
    CHECK(request(path, {}).error().code == device_error_code::not_found);
    CHECK(request("", {}).error().code == device_error_code::not_found);
    CHECK(request(std::string(200, 'x'), {}).error().code == device_error_code::not_found);
    if (::geteuid() != 0) {  // root may write everywhere
        zeusd_standin const closed{path, [](std::string const&, std::string const&) { return zeusd_standin::reply{200, ""}; }};
        std::filesystem::permissions(path, std::filesystem::perms::none);
        CHECK(request(path, {}).error().code == device_error_code::no_permission);
    }
}
