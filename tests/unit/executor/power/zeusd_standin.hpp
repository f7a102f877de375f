#pragma once
// SPDX-License-Identifier: Apache-2.0

// A server in the place of zeusd: answers one request after the other on a Unix socket, in the form of its published
// interface, and keeps what it was asked.

#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

class zeusd_standin {
public:
    struct reply {
        int status = 200;
        std::string body;
    };

    /// Serves at the path; `answer` gives the reply to a request line such as "GET /discover".
    zeusd_standin(std::string path, std::function<reply(std::string const& line, std::string const& whole)> answer)
        : path_{std::move(path)}, answer_{std::move(answer)}, socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)}
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
        if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(socket_, 8) != 0) {
            throw std::runtime_error("no socket at " + path_);
        }
        thread_ = std::thread{[this] { serve(); }};
    }
    ~zeusd_standin()
    {
        ends_ = true;
        thread_.join();
        ::close(socket_);
        ::unlink(path_.c_str());
    }
    zeusd_standin(zeusd_standin const&) = delete;
    zeusd_standin& operator=(zeusd_standin const&) = delete;

    std::string const& path() const { return path_; }

    std::vector<std::string> requests() const
    {
        std::lock_guard const lock{mutex_};
        return requests_;
    }

    /// What a daemon with all rights says of two GPUs.
    static reply with_two_gpus(std::string const& line, std::string const& groups = "\"gpu-control\", \"gpu-read\"")
    {
        if (line == "GET /discover") {
            return {200, R"({"gpus": [{"id": 0, "name": "G", "pci_address": "0000:02:00.0", "cumulative_energy_available": true},)"
                         R"({"id": 5, "name": "G", "pci_address": "0000:01:00.0", "cumulative_energy_available": true}], "cpus": [], "enabled_api_groups": [)" +
                             groups + R"(], "auth_required": false})"};
        }
        return {line.starts_with("POST /gpu/") ? 200 : 404, ""};
    }

private:
    void serve()
    {
        while (!ends_) {
            pollfd entry{socket_, POLLIN, 0};
            if (::poll(&entry, 1, 20) != 1) {
                continue;
            }
            int const connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
            std::string text;
            char part[1024];
            for (ssize_t count = 0; text.find("\r\n\r\n") == std::string::npos && (count = ::recv(connection, part, sizeof part, 0)) > 0;) {
                text.append(part, static_cast<std::size_t>(count));
            }
            auto const line = text.substr(0, text.find(" HTTP/"));
            {
                std::lock_guard const lock{mutex_};
                requests_.push_back(line);
            }
            auto const is = answer_(line, text);
            auto const whole = is.status == 0
                                   ? is.body
                                   : "HTTP/1.1 " + std::to_string(is.status) + " X\r\nContent-Length: " + std::to_string(is.body.size()) + "\r\n\r\n" + is.body;
            [[maybe_unused]] auto const sent = ::send(connection, whole.data(), whole.size(), MSG_NOSIGNAL);
            ::close(connection);
        }
    }

    std::string path_;
    std::function<reply(std::string const&, std::string const&)> answer_;
    int socket_;
    std::atomic<bool> ends_{false};
    mutable std::mutex mutex_;
    std::vector<std::string> requests_;
    std::thread thread_;
};
