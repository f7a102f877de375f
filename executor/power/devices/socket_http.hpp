#pragma once
// SPDX-License-Identifier: Apache-2.0

// One HTTP request over a Unix socket: all that a daemon on the same host asks of its clients. HTTP/1.0, whose
// answers end where the connection does, so there is nothing to keep open and no chunks to put together.

#include <string>

#include "executor/power/device_result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::power {

struct http_request {
    std::string method = "GET";
    std::string target;  ///< path with its query
    std::string token;   ///< sent as bearer token when there is one
};

struct http_reply {
    int status = 0;
    std::string body;
};

/// Sends it and reads the whole reply, at most a mebibyte of it. @param patience for all of it together
device_result<http_reply> request(std::string const& socket_path, http_request const& what, seconds patience = {2.0});

}  // namespace rheo::inline v0::power
