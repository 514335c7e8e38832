#include "net/response_parser.h"

#include <boost/beast/http/error.hpp>
#include <utility>

namespace helio::net {

namespace {
constexpr std::uint32_t kHeaderLimit = 64U << 10U;
}

ResponseParser::ResponseParser(int& status, Headers& headers, std::function<bool(std::string_view)> on_body)
    : status_(status), headers_(headers), on_body_(std::move(on_body)) {
  header_limit(kHeaderLimit);
  body_limit(boost::none);  // the receiver of the body counts
}

std::size_t ResponseParser::feed(std::string_view input, Ec& ec) {
  ec = {};
  std::size_t used = 0;
  while (!ec && used < input.size() && !is_done()) {
    if (guard_.must_wait(input.substr(used))) break;
    const std::size_t taken = put(boost::asio::const_buffer(input.data() + used, input.size() - used), ec);
    guard_.note(*this, taken, ec);
    used += taken;
  }
  if (ec == boost::beast::http::error::need_more) ec = {};
  return used;
}

void ResponseParser::on_request_impl(boost::beast::http::verb, Text, Text, int, Ec&) {}
void ResponseParser::on_response_impl(int code, Text, int, Ec&) { status_ = code; }
void ResponseParser::on_field_impl(boost::beast::http::field, Text text, Text value, Ec&) {
  if (!head_done_) headers_.emplace_back(text, value);
}
void ResponseParser::on_header_impl(Ec&) { head_done_ = true; }
void ResponseParser::on_body_init_impl(const boost::optional<std::uint64_t>&, Ec&) {}

std::size_t ResponseParser::on_body_impl(Text body, Ec& ec) {
  if (!on_body_(body)) ec = make_error_code(boost::system::errc::operation_canceled);
  return body.size();
}

void ResponseParser::on_chunk_header_impl(std::uint64_t, Text, Ec&) {}
std::size_t ResponseParser::on_chunk_body_impl(std::uint64_t, Text body, Ec& ec) { return on_body_impl(body, ec); }
void ResponseParser::on_finish_impl(Ec&) {}

}  // namespace helio::net
