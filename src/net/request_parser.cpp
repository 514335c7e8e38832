#include "net/request_parser.h"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>

namespace helio::net {

namespace http = boost::beast::http;

RequestParser::RequestParser(Request& request, std::size_t header_limit) : request_(request), header_limit_(header_limit) {
  basic_parser::header_limit(static_cast<std::uint32_t>(header_limit));
  body_limit(boost::none);  // the route's limit is checked against Content-Length by the session and set before chunks are read
}

std::size_t RequestParser::feed(std::string_view input, ErrorInfo& ec) {
  ec = {};
  std::size_t used = 0;
  // Blank lines before a request are to be ignored (RFC 9112, 2.2); they count as header bytes, so their number is bounded.
  if (!got_some()) {
    while (used < input.size() && (input[used] == '\r' || input[used] == '\n')) ++used;
  }
  if (used == input.size()) ec = http::error::need_more;
  const bool in_head = !head_done_;
  while (!ec && used < input.size() && !is_done()) {
    if (guard_.must_wait(input.substr(used))) {
      ec = http::error::need_more;
      break;
    }
    const std::size_t taken = put(asio::const_buffer(input.data() + used, input.size() - used), ec);
    guard_.note(*this, taken, ec);
    used += taken;
    if (in_head && head_done_) break;
  }
  if (in_head) {
    // Beast bounds what is buffered, not what it has already taken field by field.
    header_bytes_ += used;
    if (header_bytes_ > header_limit_ && (!ec || ec == http::error::need_more)) ec = http::error::header_limit;
  }
  return used;
}

Response RequestParser::refusal(const ErrorInfo& ec) {
  if (ec == http::error::header_limit) {
    return problem(Error(ErrorCode::resource_exhausted, "the request's head is too large"), 431);
  }
  if (ec == http::error::body_limit) return problem(Error(ErrorCode::resource_exhausted, "the request's body is too large"), 413);
  return problem(Error(ErrorCode::invalid_argument, "malformed request: " + ec.message()), 400);
}

std::string_view RequestParser::complaint() const {
  if (version_ == 11 && hosts_ == 0) return "no Host header";
  if (hosts_ > 1) return "more than one Host header";
  if (lengths_ > 1) return "more than one Content-Length header";
  // A length that two parsers may read differently is how requests are smuggled.
  if (transfer_encoding_ && lengths_ > 0) return "both Content-Length and Transfer-Encoding";
  if (transfer_encoding_ && (version_ != 11 || !chunked() || foreign_coding_)) return "unsupported Transfer-Encoding";
  return {};
}

bool RequestParser::wants_upgrade_to(std::string_view protocol) const {
  const auto wanted = request_.header("Upgrade");
  return request_.method == "GET" && is_http11() && upgrade() && wanted && same_header(*wanted, protocol);
}

void RequestParser::on_request_impl(http::verb, Text method, Text target, int version, ErrorInfo&) {
  request_.method = method;
  target_ = target;
  version_ = version;
}

void RequestParser::on_response_impl(int, Text, int, ErrorInfo&) {}

void RequestParser::on_field_impl(Field name, Text text, Text value, ErrorInfo&) {
  if (head_done_) return;  // trailers
  switch (name) {
    case Field::host:
      ++hosts_;
      break;
    case Field::content_length:
      ++lengths_;
      break;
    case Field::transfer_encoding:
      // Another coding below the chunks would reach the handler, or whoever the request is carried on to, unnamed.
      foreign_coding_ = transfer_encoding_ || !boost::beast::iequals(value, "chunked");
      transfer_encoding_ = true;
      break;
    case Field::expect:
      expects_continue_ = boost::beast::iequals(value, "100-continue");
      break;
    case Field::upgrade:
      wants_websocket_ = http::token_list(value).exists("websocket");
      break;
    default:
      break;
  }
  request_.headers.emplace_back(text, value);
}

void RequestParser::on_header_impl(ErrorInfo&) { head_done_ = true; }
void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorInfo&) {}

std::size_t RequestParser::on_body_impl(Text body, ErrorInfo&) {
  sink_->append(body);
  return body.size();
}

void RequestParser::on_chunk_header_impl(std::uint64_t, Text, ErrorInfo&) {}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, Text body, ErrorInfo&) {
  sink_->append(body);
  return body.size();
}

void RequestParser::on_finish_impl(ErrorInfo&) {}

}  // namespace helio::net
