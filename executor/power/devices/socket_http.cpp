// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/socket_http.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "executor/power/descriptor.hpp"

namespace rheo::inline v0::power {

namespace {

using clock = std::chrono::steady_clock;

/// Waits until the descriptor is ready. @return false at the deadline
bool ready(int file, short events, clock::time_point deadline)
{
    for (;;) {
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
        pollfd entry{file, events, 0};
        int const code = ::poll(&entry, 1, left > 0 ? static_cast<int>(left) : 0);
        if (code > 0) {
            return true;
        }
        if (code == 0 || errno != EINTR) {
            return false;
        }
    }
}

device_error_code cause_of(int error)
{
    return error == EACCES || error == EPERM          ? device_error_code::no_permission
           : error == ENOENT || error == ECONNREFUSED ? device_error_code::not_found
                                                      : device_error_code::failed;
}

device_result<http_reply> parse(std::string const& text, std::string const& path)
{
    std::string_view const all = text;
    auto const end = all.find("\r\n\r\n");
    http_reply reply;
    bool good = all.starts_with("HTTP/1.") && all.size() > 12 && all[8] == ' ' && end != all.npos;
    good = good && std::from_chars(all.data() + 9, all.data() + 12, reply.status).ptr == all.data() + 12;
    if (!good) {
        return device_error{device_error_code::failed, "what answers at " + path + " does not speak HTTP"};
    }
    reply.body = all.substr(end + 4);
    return reply;
}

}  // namespace

device_result<http_reply> request(std::string const& socket_path, http_request const& what, seconds patience)
{
    auto const refused = [&](char const* doing, int error) {
        return device_error{cause_of(error), std::string{doing} + " " + socket_path + ": " + std::strerror(error)};
    };
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_path.empty() || socket_path.size() >= sizeof address.sun_path) {
        return device_error{device_error_code::not_found, "'" + socket_path + "' cannot be the path of a socket"};
    }
    std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
    descriptor const connection{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!connection || ::connect(connection.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0) {
        return refused("no connection to", errno);
    }
    std::string const text = what.method + " " + what.target + " HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n" +
                             (what.token.empty() ? "" : "Authorization: Bearer " + what.token + "\r\n") + "\r\n";
    auto const deadline = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{patience.count});
    for (std::size_t sent = 0; sent < text.size();) {
        if (!ready(connection.get(), POLLOUT, deadline)) {
            return refused("no request to", ETIMEDOUT);
        }
        auto const count = ::send(connection.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN && errno != EINTR) {
            return refused("no request to", errno);
        }
        sent += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    std::string received;
    constexpr std::size_t most = std::size_t{1} << 20;
    for (std::array<char, 4096> part{}; received.size() < most;) {
        if (!ready(connection.get(), POLLIN, deadline)) {
            return refused("no answer from", ETIMEDOUT);
        }
        auto const count = ::recv(connection.get(), part.data(), part.size(), 0);
        if (count == 0) {
            break;
        }
        if (count < 0 && errno != EAGAIN && errno != EINTR) {
            return refused("no answer from", errno);
        }
        received.append(part.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return parse(received, socket_path);
}

}  // namespace rheo::inline v0::power
