#pragma once
// The parts of bench-peers.

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <memory>
#include <string_view>

/// A server before another one: answers /bench/<bytes> with so many bytes and /bench/echo as a websocket that echoes; every other
/// connection goes on to `back`, byte by byte.
int front(int port, int back);
/// `connections` websockets, on each `messages` times one message of `bytes` there and back; prints the messages per second. The request's
/// target and an extra header are given.
int chat(int port, std::string_view target, std::string_view header, int connections, int messages, int bytes);
/// `followers` websockets of one log and `stalled` ones that read nothing; prints "open", and at the end what the readers saw, as JSON.
int follow(int port, std::string_view target, std::string_view header, int followers, int stalled);
/// Opens so many websockets, prints "open", and holds them until its input ends.
int hold(int port, std::string_view target, std::string_view header, int connections);

/// Blocking; `header` is "Name: value".
std::unique_ptr<boost::beast::websocket::stream<boost::asio::ip::tcp::socket, false>> open_websocket(boost::asio::io_context& context,
                                                                                                     int port, std::string_view target,
                                                                                                     std::string_view header);
