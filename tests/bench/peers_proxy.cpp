// What stands on both sides of a proxy in `./dev bench proxy`.

#include "peers.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using Tcp = asio::ip::tcp;
using Ec = boost::system::error_code;

Tcp::endpoint local(int port) { return {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(port)}; }

/// Both directions of a connection that is carried on.
class Splice : public std::enable_shared_from_this<Splice> {
 public:
  Splice(Tcp::socket a, Tcp::socket b) : a_(std::move(a)), b_(std::move(b)) {}
  void start(std::string first) {
    asio::async_write(b_, asio::buffer(first_ = std::move(first)), [self = shared_from_this()](Ec ec, std::size_t) {
      if (ec) return;
      self->pump(self->a_, self->b_, self->up_);
      self->pump(self->b_, self->a_, self->down_);
    });
  }

 private:
  using Bytes = std::array<char, 16384>;
  void pump(Tcp::socket& from, Tcp::socket& to, Bytes& bytes) {
    from.async_read_some(asio::buffer(bytes), [self = shared_from_this(), &from, &to, &bytes](Ec ec, std::size_t n) {
      if (ec) return self->close();
      asio::async_write(to, asio::buffer(bytes, n), [self, &from, &to, &bytes](Ec write_ec, std::size_t) {
        if (write_ec) return self->close();
        self->pump(from, to, bytes);
      });
    });
  }
  void close() {
    Ec ignored;
    a_.close(ignored);
    b_.close(ignored);
  }
  Tcp::socket a_, b_;
  Bytes up_{}, down_{};
  std::string first_;
};

class Echo : public std::enable_shared_from_this<Echo> {
 public:
  explicit Echo(Tcp::socket socket) : stream_(std::move(socket)) {}
  void start(const std::string& head) {
    stream_.async_accept(asio::buffer(head), [self = shared_from_this()](Ec ec) {
      if (!ec) self->read();
    });
  }

 private:
  void read() {
    stream_.async_read(buffer_, [self = shared_from_this()](Ec ec, std::size_t) {
      if (ec) return;
      self->stream_.text(self->stream_.got_text());
      self->stream_.async_write(self->buffer_.data(), [self](Ec write_ec, std::size_t) {
        self->buffer_.consume(self->buffer_.size());
        if (!write_ec) self->read();
      });
    });
  }
  websocket::stream<Tcp::socket, false> stream_;
  beast::flat_buffer buffer_;
};

class Front : public std::enable_shared_from_this<Front> {
 public:
  Front(asio::io_context& context, Tcp::socket socket, int back) : context_(context), socket_(std::move(socket)), back_(back) {}
  void read() {
    asio::async_read_until(socket_, input_, "\r\n\r\n", [self = shared_from_this()](Ec ec, std::size_t size) {
      if (!ec) self->got(size);
    });
  }

 private:
  void got(std::size_t size) {
    constexpr std::string_view kMine = "GET /bench/";
    const auto data = input_.data();
    const std::string all(asio::buffers_begin(data), asio::buffers_end(data));
    if (!all.starts_with(kMine)) {
      Tcp::socket there(context_);
      Ec ec;
      there.connect(local(back_), ec);
      if (!ec) std::make_shared<Splice>(std::move(socket_), std::move(there))->start(all);
      return;
    }
    if (all.starts_with("GET /bench/echo")) {
      head_ = all;
      const auto echo = std::make_shared<Echo>(std::move(socket_));
      echo->start(head_);
      return;
    }
    input_.consume(size);
    const std::string& answer = answer_of(std::atoi(all.c_str() + kMine.size()));
    asio::async_write(socket_, asio::buffer(answer), [self = shared_from_this()](Ec ec, std::size_t) {
      if (!ec) self->read();
    });
  }
  static const std::string& answer_of(int bytes) {
    static std::map<int, std::string> kept;
    std::string& out = kept[bytes];
    if (out.empty()) {
      out = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: bench\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
            std::string(static_cast<std::size_t>(bytes), 'x');
    }
    return out;
  }
  asio::io_context& context_;
  Tcp::socket socket_;
  int back_;
  asio::streambuf input_;
  std::string head_;
};

void accept(asio::io_context& context, Tcp::acceptor& acceptor, int back) {
  acceptor.async_accept([&context, &acceptor, back](Ec ec, Tcp::socket socket) {
    if (ec) return;
    Ec ignored;
    socket.set_option(Tcp::no_delay(true), ignored);
    std::make_shared<Front>(context, std::move(socket), back)->read();
    accept(context, acceptor, back);
  });
}

using Client = websocket::stream<Tcp::socket, false>;

class Talk : public std::enable_shared_from_this<Talk> {
 public:
  Talk(std::unique_ptr<Client> client, int messages, int bytes)
      : client_(std::move(client)), left_(messages), text_(static_cast<std::size_t>(bytes), 'm') {}
  void go() {
    if (left_-- == 0) return;
    client_->async_write(asio::buffer(text_), [self = shared_from_this()](Ec ec, std::size_t) {
      if (ec) std::exit(3);
      self->client_->async_read(self->buffer_, [self](Ec read_ec, std::size_t n) {
        if (read_ec || n != self->text_.size()) std::exit(3);
        self->buffer_.consume(n);
        self->go();
      });
    });
  }

 private:
  std::unique_ptr<Client> client_;
  int left_;
  std::string text_;
  beast::flat_buffer buffer_;
};

}  // namespace

std::unique_ptr<Client> open_websocket(asio::io_context& context, int port, std::string_view target, std::string_view header) {
  auto client = std::make_unique<Client>(context);
  client->next_layer().connect(local(port));
  client->next_layer().set_option(Tcp::no_delay(true));
  const std::size_t colon = std::min(header.find(": "), header.size());
  client->set_option(websocket::stream_base::decorator([header, colon](websocket::request_type& request) {
    if (colon < header.size()) request.set(header.substr(0, colon), header.substr(colon + 2));
  }));
  client->handshake("127.0.0.1:" + std::to_string(port), std::string(target));
  return client;
}

int front(int port, int back) {
  asio::io_context context(1);
  Tcp::acceptor acceptor(context, local(port));
  accept(context, acceptor, back);
  context.run();
  return 0;
}

int chat(int port, std::string_view target, std::string_view header, int connections, int messages, int bytes) {
  asio::io_context context(1);
  for (int i = 0; i < connections; ++i) std::make_shared<Talk>(open_websocket(context, port, target, header), messages, bytes)->go();
  const auto start = std::chrono::steady_clock::now();
  context.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%.1f\n", connections * messages / seconds);
  return 0;
}

int hold(int port, std::string_view target, std::string_view header, int connections) {
  asio::io_context context(1);
  std::vector<std::unique_ptr<Client>> held;
  held.reserve(static_cast<std::size_t>(connections));
  for (int i = 0; i < connections; ++i) held.push_back(open_websocket(context, port, target, header));
  std::puts("open");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
  return 0;
}
