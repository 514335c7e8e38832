#pragma once
#include "net/chunks.h"
#include "net/http.h"

#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace helio::net {

/// Bytes of one response to status, headers and pieces of the body.
class ResponseParser final : public boost::beast::http::basic_parser<false> {
 public:
  /// Both outlive the parser. `on_body` returns false to stop: feed() then fails with `operation_canceled`.
  ResponseParser(int& status, Headers& headers, std::function<bool(std::string_view)> on_body);

  /// Takes all of `input` up to the end of the response. Returns the bytes taken; need_more is no error here.
  std::size_t feed(std::string_view input, boost::system::error_code& ec);

 private:
  using Ec = boost::system::error_code;
  using Text = boost::beast::string_view;
  void on_request_impl(boost::beast::http::verb verb, Text method, Text target, int version, Ec& ec) override;
  void on_response_impl(int code, Text reason, int version, Ec& ec) override;
  void on_field_impl(boost::beast::http::field name, Text text, Text value, Ec& ec) override;
  void on_header_impl(Ec& ec) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, Ec& ec) override;
  std::size_t on_body_impl(Text body, Ec& ec) override;
  void on_chunk_header_impl(std::uint64_t size, Text extensions, Ec& ec) override;
  std::size_t on_chunk_body_impl(std::uint64_t remain, Text body, Ec& ec) override;
  void on_finish_impl(Ec& ec) override;

  int& status_;
  Headers& headers_;
  std::function<bool(std::string_view)> on_body_;
  bool head_done_ = false;
  LastChunkGuard guard_;
};

}  // namespace helio::net
