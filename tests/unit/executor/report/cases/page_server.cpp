// SPDX-License-Identifier: Apache-2.0
// The server of a page, asked in bytes: it serves one page, refuses all else with a sentence, and lets no client hold up another.
#include "executor/report/serve/page_server.hpp"

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// A client's connection.
class client {
public:
    explicit client(int port) : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}
    {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<std::uint16_t>(port));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE(::connect(socket_, reinterpret_cast<sockaddr const*>(&to), sizeof to) == 0);
    }
    ~client() { ::close(socket_); }
    client(client const&) = delete;
    client& operator=(client const&) = delete;

    void send(std::string const& text) const { REQUIRE(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())); }

    /// What comes until the other side closes.
    std::string rest() const
    {
        std::string all;
        char block[4096];
        for (ssize_t count = 1; (count = ::recv(socket_, block, sizeof block, 0)) > 0;) {
            all.append(block, static_cast<std::size_t>(count));
        }
        return all;
    }

private:
    int socket_;
};

struct running_server {
    std::atomic<int> made{0};
    std::atomic<bool> is_live{true};
    std::atomic<bool> fails{false};
    page_server server{"127.0.0.1", 0, [this] {
                           ++made;
                           if (fails) {
                               throw std::runtime_error("the run is in the making");
                           }
                           return served_page{.text = "<p>page " + std::to_string(made) + "</p>", .is_live = is_live};
                       }};
    std::thread runs{[this] { server.run(false); }};

    ~running_server()
    {
        server.stop();
        runs.join();
    }

    int port() const
    {
        auto const url = server.url();
        return std::stoi(url.substr(url.rfind(':') + 1));
    }
    std::string reply(std::string const& request) const
    {
        client const c{port()};
        c.send(request);
        return c.rest();
    }
    std::string get(std::string const& target, std::string const& host = "localhost") const
    {
        return reply("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    }
};

std::string status_of(std::string const& reply) { return reply.substr(0, reply.find("\r\n")); }
std::string body_of(std::string const& reply) { return reply.substr(reply.find("\r\n\r\n") + 4); }
bool has_field(std::string const& reply, std::string const& field) { return reply.find("\r\n" + field + "\r\n") < reply.find("\r\n\r\n") + 2; }

}  // namespace

TEST_CASE("page_server: the page is made at each request")
{
    running_server site;
    auto const first = site.get("/");
    CHECK(status_of(first) == "HTTP/1.1 200 OK");
    CHECK(body_of(first) == "<p>page 1</p>");
    CHECK(has_field(first, "Content-Type: text/html; charset=utf-8"));
    CHECK(has_field(first, "Cache-Control: no-store"));
    CHECK(has_field(first, "X-Content-Type-Options: nosniff"));
    CHECK(has_field(first, "Refresh: 5"));
    site.is_live = false;
    auto const second = site.get("/");
    CHECK(body_of(second) == "<p>page 2</p>");
    CHECK(second.find("Refresh") == second.npos);
    auto const head = site.reply("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    CHECK(status_of(head) == "HTTP/1.1 200 OK");
    CHECK(has_field(head, "Content-Length: 13"));
    CHECK(body_of(head).empty());
    auto const two = site.reply("GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    CHECK(two.find("<p>page 4</p>") < two.find("<p>page 5</p>"));
    CHECK(two.ends_with("<p>page 5</p>"));
}

TEST_CASE("page_server: nothing but the page is served")
{
    running_server site;
    for (auto const* target : {"/metrics.jsonl", "/../../etc/passwd", "//", "/..", "/%2e%2e/", "/?a=b", "*", "file:///etc/passwd", "http://elsewhere/"}) {
        auto const reply = site.get(target);
        CAPTURE(target);
        CHECK(status_of(reply) == "HTTP/1.1 404 Not Found");
        CHECK(body_of(reply) == "There is one page here, at /.\n");
    }
    for (auto const* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"}) {
        auto const reply = site.reply(std::string{method} + " / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody");
        CAPTURE(method);
        CHECK(status_of(reply) == "HTTP/1.1 405 Method Not Allowed");
        CHECK(has_field(reply, "Allow: GET, HEAD"));
        CHECK(has_field(reply, "Connection: close"));
    }
    CHECK(site.made == 0);
}

TEST_CASE("page_server: what is no request is answered with a sentence")
{
    running_server site;
    for (auto const* request : {"\r\n\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 hello\r\n\r\n",
                                "GET / HTTP/1.1\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"}) {
        auto const reply = site.reply(request);
        CAPTURE(request);
        CHECK(status_of(reply) == "HTTP/1.1 400 Bad Request");
        CHECK(body_of(reply).starts_with("This is no request of HTTP/1.1: "));
    }
    CHECK(status_of(site.reply("GET / HTTP/1.1\r\nX: " + std::string(10000, 'x'))) == "HTTP/1.1 431 Request Header Fields Too Large");
    CHECK(site.made == 0);
    CHECK(status_of(site.get("/")) == "HTTP/1.1 200 OK");
}

TEST_CASE("page_server: on loopback it answers for loopback names only")
{
    running_server site;
    for (auto const* host : {"localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "127.1.2.3:9", "[::1]", "[::1]:8080", "a.localhost:80"}) {
        CAPTURE(host);
        CHECK(status_of(site.get("/", host)) == "HTTP/1.1 200 OK");
    }
    auto const before = site.made.load();
    for (auto const* host : {"evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.1", "[::2]:80", "", "[", "127.0.0.1.evil.example"}) {
        CAPTURE(host);
        CHECK(status_of(site.get("/", host)) == "HTTP/1.1 421 Misdirected Request");
    }
    CHECK(site.made == before);
}

TEST_CASE("page_server: a page that cannot be made now is tried again")
{
    running_server site;
    site.fails = true;
    auto const reply = site.get("/");
    CHECK(status_of(reply) == "HTTP/1.1 503 Service Unavailable");
    CHECK(body_of(reply) == "the run is in the making\n");
    CHECK(has_field(reply, "Refresh: 5"));
    site.fails = false;
    CHECK(status_of(site.get("/")) == "HTTP/1.1 200 OK");
}

TEST_CASE("page_server: a silent client holds up nobody")
{
    running_server site;
    client const silent{site.port()};
    silent.send("GET / HT");
    CHECK(status_of(site.get("/")) == "HTTP/1.1 200 OK");
    CHECK(status_of(site.get("/")) == "HTTP/1.1 200 OK");
}

TEST_CASE("page_server: an address that cannot be used is a sentence")
{
    running_server site;
    auto const make = [](std::string const& address, int port) { page_server{address, port, [] { return served_page{}; }}; };
    CHECK_THROWS_WITH(make("127.0.0.1", site.port()),
                      "127.0.0.1 port " + std::to_string(site.port()) +
                          " cannot be listened on: Address already in use; choose another address or port, or port 0 for a free one");
    CHECK_THROWS_WITH(make("localhost", 0), "--bind 'localhost': expected an IP address of this machine, such as 127.0.0.1, ::1 or 0.0.0.0");
    CHECK_THROWS_AS(make("203.0.113.7", 0), exit_error);  // of no machine
}
