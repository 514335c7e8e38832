#pragma once
// The concrete Asio types of net/: the loop's own executor everywhere, so nothing is erased on the hot path.
// TLS comes as another Socket type behind Session and WsConnection, which are no templates.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>

namespace helio::net {

namespace asio = boost::asio;
using ErrorInfo = boost::system::error_code;
using Executor = asio::io_context::executor_type;
using Tcp = asio::ip::tcp;
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using SteadyClock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<SteadyClock, asio::wait_traits<SteadyClock>, Executor>;
template <class T>
using Awaitable = asio::awaitable<T, Executor>;
/// Completion token: `auto r = co_await op(kAwait); auto& [ec, n] = r;`
inline constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> kAwait{asio::use_awaitable_t<Executor>()};

}  // namespace helio::net
