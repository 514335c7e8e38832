#pragma once
// Bytes to Request, without a container in between.

#include "net/asio_types.h"
#include "net/chunks.h"
#include "net/http.h"

#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <string>
#include <string_view>

namespace helio::net {

/// Of one request. Beast's grammar plus what it leaves to its users: one Host, no length tricks, a bound on the whole head.
class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  /// Fills method and headers of `request`; both references outlive the parser.
  RequestParser(Request& request, std::size_t header_limit);

  /// Takes what it can of `input`, stops after the head and again at the end. Returns the bytes taken.
  /// need_more means just that; any other error is for good.
  std::size_t feed(std::string_view input, ErrorInfo& ec);
  /// Body bytes are appended here; must be set before feeding beyond the head.
  void set_sink(std::string& sink) { sink_ = &sink; }
  /// The answer to a failed feed(): status and reason.
  static Response refusal(const ErrorInfo& ec);
  /// After the head: what makes the request unacceptable, or empty.
  [[nodiscard]] std::string_view complaint() const;

  [[nodiscard]] const std::string& target() const { return target_; }
  [[nodiscard]] bool expects_continue() const { return expects_continue_; }
  [[nodiscard]] bool wants_websocket() const { return wants_websocket_ && upgrade(); }
  /// Of a GET: it wants to go on in this other protocol, and in no other.
  [[nodiscard]] bool wants_upgrade_to(std::string_view protocol) const;
  [[nodiscard]] bool is_http11() const { return version_ == 11; }

 private:
  using Field = boost::beast::http::field;
  using Text = boost::beast::string_view;
  void on_request_impl(boost::beast::http::verb verb, Text method, Text target, int version, ErrorInfo& ec) override;
  void on_response_impl(int code, Text reason, int version, ErrorInfo& ec) override;
  void on_field_impl(Field name, Text text, Text value, ErrorInfo& ec) override;
  void on_header_impl(ErrorInfo& ec) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorInfo& ec) override;
  std::size_t on_body_impl(Text body, ErrorInfo& ec) override;
  void on_chunk_header_impl(std::uint64_t size, Text extensions, ErrorInfo& ec) override;
  std::size_t on_chunk_body_impl(std::uint64_t remain, Text body, ErrorInfo& ec) override;
  void on_finish_impl(ErrorInfo& ec) override;

  Request& request_;
  std::string* sink_ = nullptr;
  std::string target_;
  std::size_t header_limit_;
  std::size_t header_bytes_ = 0;
  int version_ = 0;
  int hosts_ = 0;
  int lengths_ = 0;
  bool transfer_encoding_ = false;
  bool foreign_coding_ = false;
  bool expects_continue_ = false;
  bool wants_websocket_ = false;
  bool head_done_ = false;
  LastChunkGuard guard_;
};

}  // namespace helio::net
