// SPDX-License-Identifier: Apache-2.0
#include "executor/power/guardian/guardian.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/power/guardian/spawn.hpp"

namespace rheo::inline v0::power {

namespace {

constexpr int most_wait_ms = 5000;

bool send_all(int socket, std::string_view text)
{
    while (!text.empty()) {
        auto const count = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return true;
}

/// A line that the guardian says; empty: it says nothing any more.
std::string line_from(int socket)
{
    std::string line;
    for (char c = 0;;) {
        pollfd entry{socket, POLLIN, 0};
        int const code = ::poll(&entry, 1, most_wait_ms);
        if (code < 0 && errno == EINTR) {
            continue;
        }
        if (code <= 0 || ::recv(socket, &c, 1, 0) != 1) {
            return {};
        }
        if (c == '\n') {
            return line;
        }
        line += c;
    }
}

}  // namespace

device_result<std::string> guardian_program(std::string const& configured)
{
    std::error_code error;
    auto const program = configured.empty() ? (std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "rheo-guardian").string() : configured;
    if (::access(program.c_str(), X_OK) != 0) {
        return device_error{device_error_code::not_found, "there is no guardian to restore clocks: " + program + ": " + std::strerror(errno)};
    }
    return program;
}

device_result<guardian> guardian::start(std::string const& program)
{
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return device_error{device_error_code::failed, std::string{"no guardian: no socket: "} + std::strerror(errno)};
    }
    guardian result;
    result.socket_ = descriptor{ends[0]};
    descriptor const theirs{ends[1]};
    std::array const words{program, std::to_string(::getpid())};
    auto const [process, error] = spawn(program, words, {.input = theirs.get(), .errors = -1, .kind = leads::session, .blocks_signals = true});
    if (error != 0) {
        return device_error{device_error_code::failed, "the guardian " + program + " cannot be started: " + std::strerror(error)};
    }
    result.process_ = process;
    return result;
}

guardian& guardian::operator=(guardian&& other) noexcept
{
    std::swap(socket_, other.socket_);
    std::swap(process_, other.process_);
    return *this;
}

guardian::~guardian() { end("now\n"); }

device_result<done> guardian::arm(std::string const& claim, restoration const& how)
{
    auto const said = send_all(socket_.get(), "claim\t" + claim + "\n" + to_text(how) + "end\n") ? line_from(socket_.get()) : std::string{};
    if (said != "armed") {
        return device_error{device_error_code::failed, "the guardian does not answer" + (said.empty() ? "" : " as it should: " + said)};
    }
    return done{};
}

void guardian::dismiss() { end("leave\n"); }

bool guardian::lives()
{
    if (!socket_) {
        return false;
    }
    pollfd entry{socket_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 0;  // it never speaks first: anything to be read is its end
}

void guardian::end(char const* word)
{
    if (process_ < 0 || !socket_) {
        return;
    }
    send_all(socket_.get(), word);
    ::shutdown(socket_.get(), SHUT_WR);
    // It ends by itself; one that does not, because what it restores hangs, is left alone after a while.
    for (auto const begun = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begun < std::chrono::milliseconds{most_wait_ms};) {
        auto const code = ::waitpid(process_, nullptr, WNOHANG);
        if (code == process_ || (code < 0 && errno != EINTR)) {
            break;
        }
        ::usleep(500);
    }
    socket_.reset();
    process_ = -1;
}

}  // namespace rheo::inline v0::power
