// Many readers of one log in `./dev bench fanout`.

#include "peers.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using Tcp = asio::ip::tcp;
using Ec = boost::system::error_code;
using Client = websocket::stream<Tcp::socket, false>;

struct Totals {
  std::vector<float> lag_ms;  ///< of one line in a hundred
  long out_of_order = 0;
  long fewest = -1;
  int unclean = 0;
};

/// Lines are "<number> <nanoseconds of CLOCK_REALTIME> …"; others do not count.
class Follower : public std::enable_shared_from_this<Follower> {
 public:
  Follower(std::unique_ptr<Client> client, Totals& totals) : client_(std::move(client)), totals_(totals) {}
  void read() {
    client_->async_read(buffer_, [self = shared_from_this()](Ec ec, std::size_t) {
      if (ec) return self->end(ec);
      const auto data = self->buffer_.cdata();
      self->take({static_cast<const char*>(data.data()), data.size()});
      self->buffer_.consume(self->buffer_.size());
      self->read();
    });
  }

 private:
  void take(std::string_view text) {
    held_ += text;
    std::size_t from = 0;
    for (std::size_t end = held_.find('\n'); end != std::string::npos; end = held_.find('\n', from)) {
      line(std::string_view(held_).substr(from, end - from));
      from = end + 1;
    }
    held_.erase(0, from);
  }
  void line(std::string_view text) {
    long number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{}) return;
    if (number != next_) ++totals_.out_of_order;
    next_ = number + 1;
    ++lines_;
    if (number % 100 != 0) return;
    long written = 0;
    if (std::from_chars(parsed.ptr + 1, text.data() + text.size(), written).ec != std::errc{}) return;
    const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    totals_.lag_ms.push_back(static_cast<float>(static_cast<double>(now - written) / 1e6));
  }
  void end(Ec ec) {
    if (ec != websocket::error::closed) ++totals_.unclean;
    totals_.fewest = totals_.fewest < 0 ? lines_ : std::min(totals_.fewest, lines_);
  }
  std::unique_ptr<Client> client_;
  Totals& totals_;
  boost::beast::flat_buffer buffer_;
  std::string held_;
  long next_ = 0;
  long lines_ = 0;
};

}  // namespace

int follow(int port, std::string_view target, std::string_view header, int followers, int stalled) {
  asio::io_context context(1);
  Totals totals;
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < stalled; ++i) idle.push_back(open_websocket(context, port, target, header));
  for (int i = 0; i < followers; ++i) std::make_shared<Follower>(open_websocket(context, port, target, header), totals)->read();
  std::puts("open");
  std::fflush(stdout);
  context.run();
  std::ranges::sort(totals.lag_ms);
  const auto at = [&](double share) {
    return totals.lag_ms.empty() ? -1.0F : totals.lag_ms[static_cast<std::size_t>(share * static_cast<double>(totals.lag_ms.size() - 1))];
  };
  std::printf("{\"fewest\": %ld, \"out_of_order\": %ld, \"unclean\": %d, \"lag_p50\": %.1f, \"lag_p99\": %.1f, \"lag_max\": %.1f}\n",
              totals.fewest, totals.out_of_order, totals.unclean, at(0.5), at(0.99), at(1));
  return 0;
}
