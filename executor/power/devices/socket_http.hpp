#pragma once
// SPDX-License-Identifier: Apache-2.0

// One HTTP request over a Unix socket, by Boost.Beast: all that a daemon on the same host needs of its clients. The types of
// Boost stay in the source file.

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

/// Sends it and reads the whole reply. A body of more than a mebibyte is an error. @param patience for all of it together
device_result<http_reply> request(std::string const& socket_path, http_request const& request, seconds patience = {2.0});

}  // namespace rheo::inline v0::power
