// SPDX-License-Identifier: Apache-2.0
#include "executor/report/serve/page_server.hpp"

#include <chrono>
#include <csignal>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

/// For a request, and for its answer: who is slower is left.
constexpr auto patience = std::chrono::seconds{30};
constexpr int most_connections = 64;

/// Whether a request's Host names this machine by a loopback name, with any port: a tunnel has one of its own.
bool is_loopback_name(std::string_view host)
{
    auto const end = host.starts_with('[') ? host.find(']') + 1 : host.find(':');
    auto const name = host.substr(0, end);
    if (name == "localhost" || name.ends_with(".localhost")) {
        return true;
    }
    bool const is_bracketed = name.size() > 2 && name.front() == '[' && name.back() == ']';
    error_code error;
    auto const address = asio::ip::make_address(std::string{is_bracketed ? name.substr(1, name.size() - 2) : name}, error);
    return !error && address.is_loopback();
}

http::response<http::string_body> answer(http::status status, std::string text, std::string_view type)
{
    http::response<http::string_body> response{status, 11};
    response.set(http::field::server, "rheo");
    response.set(http::field::content_type, beast::string_view{type.data(), type.size()});
    response.set(http::field::cache_control, "no-store");
    response.set("X-Content-Type-Options", "nosniff");
    response.set("Referrer-Policy", "no-referrer");
    response.set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:");
    response.body() = std::move(text);
    return response;
}

http::response<http::string_body> sentence(http::status status, std::string_view text)
{
    return answer(status, fmt::format("{}\n", text), "text/plain; charset=utf-8");
}

struct site {
    bool is_loopback;
    std::function<served_page()> page;
    int connections = 0;

    http::response<http::string_body> page_now() const
    {
        served_page made;
        try {
            made = page();
        } catch (std::exception const& error) {
            made = {.is_there = false, .text = error.what(), .is_live = true};
        }
        auto response =
            made.is_there ? answer(http::status::ok, std::move(made.text), "text/html; charset=utf-8") : sentence(http::status::service_unavailable, made.text);
        if (made.is_live) {
            response.set("Refresh", std::to_string(page_server::refresh_s));
        }
        return response;
    }

    http::response<http::string_body> response_to(http::request<http::empty_body> const& request) const
    {
        auto const host = request[http::field::host];
        if (is_loopback && !is_loopback_name({host.data(), host.size()})) {
            return sentence(http::status::misdirected_request, "This server answers only for localhost: it listens on a loopback address.");
        }
        if (request.target() != "/") {
            return sentence(http::status::not_found, "There is one page here, at /.");
        }
        if (request.method() != http::verb::get && request.method() != http::verb::head) {
            auto response = sentence(http::status::method_not_allowed, "This page can be read (GET, HEAD) and nothing else.");
            response.set(http::field::allow, "GET, HEAD");
            return response;
        }
        return page_now();
    }
};

/// A connection: requests one after the other, until its end or an error.
class connection : public std::enable_shared_from_this<connection> {
public:
    connection(tcp::socket socket, site& of) : stream_{std::move(socket)}, site_{of} { ++site_.connections; }
    ~connection() { --site_.connections; }
    connection(connection const&) = delete;
    connection& operator=(connection const&) = delete;

    void read()
    {
        parser_.emplace();
        stream_.expires_after(patience);
        http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) { self->has_read(error); });
    }

private:
    void has_read(error_code error)
    {
        if (error == http::error::end_of_stream || error == beast::error::timeout ||
            (error && error.category() != http::make_error_code(http::error::bad_method).category())) {
            return;  // nobody to answer
        }
        if (error) {
            auto const is_long = error == http::error::header_limit;
            write(sentence(is_long ? http::status::request_header_fields_too_large : http::status::bad_request,
                           "This is no request of HTTP/1.1: " + error.message() + "."),
                  false, false);
            return;
        }
        auto const& request = parser_->get();
        bool const has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;  // which is not read
        write(site_.response_to(request), request.method() == http::verb::head, request.keep_alive() && !has_body);
    }

    void write(http::response<http::string_body> response, bool head_only, bool keep)
    {
        response_ = std::move(response);
        response_.keep_alive(keep);
        response_.prepare_payload();
        if (head_only) {
            response_.body().clear();  // its length stays in the head
        }
        serializer_.emplace(response_);
        stream_.expires_after(patience);
        auto const has_written = [self = shared_from_this(), keep](error_code error, std::size_t) {
            if (!error && keep) {
                self->read();
            } else {
                error_code ignored;
                static_cast<void>(self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored));
            }
        };
        if (head_only) {
            serializer_->split(true);
            http::async_write_header(stream_, *serializer_, has_written);
        } else {
            http::async_write(stream_, *serializer_, has_written);
        }
    }

    beast::tcp_stream stream_;
    site& site_;
    beast::flat_buffer buffer_{};
    std::optional<http::request_parser<http::empty_body>> parser_{};
    http::response<http::string_body> response_{};
    std::optional<http::response_serializer<http::string_body>> serializer_{};
};

}  // namespace

struct page_server::impl {
    site served;
    asio::io_context context{1};
    tcp::acceptor acceptor{context};
    asio::steady_timer pause{context};

    void accept()
    {
        acceptor.async_accept([this](error_code error, tcp::socket socket) {
            if (error == asio::error::operation_aborted) {
                return;
            }
            if (!error && served.connections < most_connections) {
                std::make_shared<connection>(std::move(socket), served)->read();
            }
            if (!error) {
                accept();
                return;
            }
            pause.expires_after(std::chrono::milliseconds{100});  // no descriptor is left, for one
            pause.async_wait([this](error_code ended) {
                if (!ended) {
                    accept();
                }
            });
        });
    }
};

page_server::page_server(std::string const& address, int port, std::function<served_page()> page)
{
    error_code error;
    auto const at = asio::ip::make_address(address, error);
    if (error) {
        throw exit_error{exit_code::usage,
                         fmt::format("--bind {}: expected an IP address of this machine, such as 127.0.0.1, ::1 or 0.0.0.0", in_quotes(address))};
    }
    impl_ = std::make_unique<impl>(site{.is_loopback = at.is_loopback(), .page = std::move(page)});
    tcp::endpoint const end{at, static_cast<unsigned short>(port)};
    auto& acceptor = impl_->acceptor;
    acceptor.open(end.protocol(), error);
    if (!error) {
        acceptor.set_option(asio::socket_base::reuse_address{true}, error);
    }
    if (!error) {
        acceptor.bind(end, error);
    }
    if (!error) {
        acceptor.listen(asio::socket_base::max_listen_connections, error);
    }
    if (error) {
        throw exit_error{exit_code::environment, fmt::format("{} port {} cannot be listened on: {}; choose another address or port, or port 0 for a free one",
                                                             address, port, error.message())};
    }
}

page_server::~page_server() = default;

std::string page_server::url() const
{
    error_code error;
    auto const end = impl_->acceptor.local_endpoint(error);
    auto const address = end.address().to_string();
    return end.address().is_v6() ? fmt::format("http://[{}]:{}/", address, end.port()) : fmt::format("http://{}:{}/", address, end.port());
}

void page_server::run(bool takes_signals)
{
    std::optional<asio::signal_set> signals;
    if (takes_signals) {
        signals.emplace(impl_->context, SIGINT, SIGTERM);
        signals->async_wait([this](error_code error, int) {
            if (!error) {
                stop();
            }
        });
    }
    impl_->accept();
    impl_->context.run();
    signals.reset();
    error_code ignored;
    impl_->acceptor.close(ignored);
}

void page_server::stop() { impl_->context.stop(); }

}  // namespace rheo::inline v0
