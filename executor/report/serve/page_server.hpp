#pragma once
// SPDX-License-Identifier: Apache-2.0

// One page over HTTP/1.1, made at each request, and nothing else: no other path, no method but GET and HEAD, no file of the machine. On a loopback address it
// answers only requests for a loopback name, so that no page from elsewhere can read it through a visitor's browser. Boost.Beast speaks the protocol.

#include <functional>
#include <memory>
#include <string>

namespace rheo::inline v0 {

struct served_page {
    bool is_there = true;  ///< else the text says why not, and it is tried again
    std::string text;      ///< HTML; a sentence where it is not there
    bool is_live = false;  ///< a browser loads it again after refresh_s
};

class page_server {
public:
    static constexpr int refresh_s = 5;

    /// Listens from now on. @param address of this machine  @param port 0: a free one  @param page called at each request for it; what it throws is answered
    /// as a page that is not there. @throws exit_error when the address is none, or cannot be used
    page_server(std::string const& address, int port, std::function<served_page()> page);
    ~page_server();
    page_server(page_server const&) = delete;
    page_server& operator=(page_server const&) = delete;

    /// "http://127.0.0.1:8080/"
    std::string url() const;

    /// Answers requests until stop() or, if it takes signals, SIGINT or SIGTERM.
    void run(bool takes_signals);

    /// From any thread.
    void stop();

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace rheo::inline v0
