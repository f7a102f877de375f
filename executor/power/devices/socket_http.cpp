// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/socket_http.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

#include <fcntl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace rheo::inline v0::power {

namespace {

using boost::system::error_code;
using unix_socket = boost::asio::local::stream_protocol;
namespace http = boost::beast::http;

device_error_code cause_of(error_code const& error)
{
    using namespace boost::system::errc;
    return error == permission_denied || error == operation_not_permitted      ? device_error_code::no_permission
           : error == no_such_file_or_directory || error == connection_refused ? device_error_code::not_found
                                                                               : device_error_code::failed;
}

http::request<http::empty_body> message_of(http_request const& request)
{
    http::request<http::empty_body> message;
    message.method_string(request.method);
    message.target(request.target);
    message.set(http::field::host, "localhost");
    message.set(http::field::connection, "close");
    if (!request.token.empty()) {
        message.set(http::field::authorization, "Bearer " + request.token);
    }
    message.prepare_payload();
    return message;
}

}  // namespace

device_result<http_reply> request(std::string const& socket_path, http_request const& request, seconds patience)
{
    if (socket_path.empty() || socket_path.size() >= unix_socket::endpoint{}.capacity()) {
        return device_error{device_error_code::not_found, "'" + socket_path + "' cannot be the path of a socket"};
    }
    boost::asio::io_context context{1};
    boost::beast::basic_stream<unix_socket> stream{context};
    error_code error;
    char const* doing = "no connection to";
    auto const keep_error = [&](error_code const& e, std::size_t = 0) { error = e; };
    auto const finish = [&](char const* next) {
        context.restart();
        context.run();
        return !error && (doing = next) != nullptr;
    };
    stream.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>{patience.count}));  // for all of it
    static_cast<void>(stream.socket().open({}, error));
    ::fcntl(stream.socket().native_handle(), F_SETFD, FD_CLOEXEC);  // a child would keep the connection open

    auto const message = message_of(request);
    http::response_parser<http::string_body> reply;
    reply.body_limit(std::size_t{1} << 20);
    boost::beast::flat_buffer received;
    if (!error) {
        stream.async_connect(unix_socket::endpoint{socket_path}, keep_error);
    }
    if (finish("no request to")) {
        http::async_write(stream, message, keep_error);
    }
    if (finish("no answer from")) {
        http::async_read_header(stream, received, reply, keep_error);  // by itself: Boost 1.74 loses body_limit when it reads both at once
    }
    if (finish("no answer from")) {
        http::async_read(stream, received, reply, keep_error);
    }
    finish("");
    if (error.category() == http::make_error_code(http::error::end_of_stream).category()) {
        return device_error{device_error_code::failed, "what answers at " + socket_path + " does not speak HTTP: " + error.message()};
    }
    if (error) {
        return device_error{cause_of(error), std::string{doing} + " " + socket_path + ": " + error.message()};
    }
    return http_reply{static_cast<int>(reply.get().result_int()), std::move(reply.get().body())};
}

}  // namespace rheo::inline v0::power
