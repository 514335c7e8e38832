#include "net/tls_listener.h"

#include "base/check.h"
#include "base/log.h"
#include "net/asio_types.h"
#include "net/deadline.h"
#include "net/listen.h"
#include "net/socket_io.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <optional>
#include <unordered_set>
#include <utility>

namespace helio::net {
namespace {

namespace ssl = asio::ssl;
using SslStream = ssl::stream<Socket>;

constexpr std::size_t kPiece = 16U << 10U;  // a record of TLS
constexpr Duration kLastWord = 5s;          // after one side has ended

/// When a file was changed last, as far as that can be told; {} when it is not there.
struct Stamp {
  ino_t inode = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  bool operator==(const Stamp&) const = default;
};
Stamp stamp_of(const std::string& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

Result<std::shared_ptr<ssl::context>> load(const TlsOptions& options) {
  const auto wrong = [](const std::string& file, const ErrorInfo& ec) {
    return fail(ErrorCode::invalid_argument, "{}: {}", file, ec.message());
  };
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  ErrorInfo ec;
  context->set_options(ssl::context::no_sslv2 | ssl::context::no_sslv3 | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1, ec);
  ::SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  ::SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  if (!ec) context->use_certificate_chain_file(options.certificate, ec);
  if (ec) return wrong(options.certificate, ec);
  context->use_private_key_file(options.key, ssl::context::pem, ec);
  if (ec) return wrong(options.key, ec);
  if (::SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return fail(ErrorCode::invalid_argument, "{} is not the key of {}", options.key, options.certificate);
  }
  return context;
}

}  // namespace

struct TlsListener::Impl : std::enable_shared_from_this<TlsListener::Impl> {
  /// One client, from its handshake to its end.
  struct Connection : std::enable_shared_from_this<Connection> {
    Connection(std::shared_ptr<Impl> owner_in, Socket socket, std::shared_ptr<ssl::context> context_in, std::string peer_in)
        : owner(std::move(owner_in)),
          context(std::move(context_in)),
          client(std::move(socket), *context),
          inner(client.get_executor()),
          peer(std::move(peer_in)) {
      deadline = std::make_shared<Deadline>(client.next_layer().get_executor(), [this] { shut(); });
      owner->connections.insert(this);
    }
    ~Connection() {
      deadline->end();
      owner->connections.erase(this);
      if (owner->connections.empty() && owner->gone) std::exchange(owner->gone, std::nullopt)->set_value();
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void shut() {
      ErrorInfo ignored;
      client.next_layer().close(ignored);
      inner.close(ignored);
    }

    static Awaitable<void> run(std::shared_ptr<Connection> self) {
      self->deadline->set(self->owner->options.handshake_deadline);
      const auto shaken = co_await self->client.async_handshake(ssl::stream_base::server, kAwait);
      self->deadline->clear();
      const auto& [ec] = shaken;
      if (!ec && !self->owner->stopping && self->hand_over()) {
        using namespace asio::experimental::awaitable_operators;
        co_await (self->up() && self->down());
      }
      self->shut();
    }

    bool hand_over() {
      std::array<int, 2> pair{};
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) return false;
      ErrorInfo ec;
      // To Asio a stream socket is a stream socket.
      inner.assign(Tcp::v4(), pair[0], ec);
      HELIO_CHECK(!ec, "a fresh descriptor is taken");
      inner.non_blocking(true, ec);
      owner->server.adopt(pair[1], peer);
      return true;
    }

    Awaitable<void> up() {
      std::array<char, kPiece> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
      while (true) {
        const auto read = co_await client.async_read_some(asio::buffer(bytes), kAwait);
        const auto& [ec, n] = read;
        if (ec) break;
        const auto written = co_await asio::async_write(inner, asio::buffer(bytes.data(), n), kAwait);
        if (const auto& [write_ec, done] = written; write_ec) break;
      }
      ErrorInfo ignored;
      inner.shutdown(Socket::shutdown_send, ignored);
      deadline->set(kLastWord);
    }

    Awaitable<void> down() {
      std::array<char, kPiece> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
      while (true) {
        const auto read = co_await inner.async_read_some(asio::buffer(bytes), kAwait);
        const auto& [ec, n] = read;
        if (ec) break;
        const auto written = co_await asio::async_write(client, asio::buffer(bytes.data(), n), kAwait);
        if (const auto& [write_ec, done] = written; write_ec) break;
      }
      deadline->set(kLastWord);
      const auto ended = co_await client.async_shutdown(kAwait);
      static_cast<void>(ended);
      shut();
    }

    const std::shared_ptr<Impl> owner;
    const std::shared_ptr<ssl::context> context;
    SslStream client;
    Socket inner;
    const std::string peer;
    std::shared_ptr<Deadline> deadline;
  };

  Impl(rt::EventLoop& loop_in, Server& server_in, TlsOptions options_in)
      : loop(loop_in), server(server_in), options(std::move(options_in)) {}

  Result<void> reload() {
    const std::array<Stamp, 2> now{stamp_of(options.certificate), stamp_of(options.key)};
    if (context && now == stamps) return {};
    stamps = now;
    HELIO_TRY(loaded, load(options));
    context = std::move(loaded);
    return {};
  }

  static Awaitable<void> accept_connections(std::shared_ptr<Impl> self) {
    while (self->acceptor->is_open()) {
      auto accepted = co_await self->acceptor->async_accept(kAwait);
      auto& [ec, socket] = accepted;
      if (ec == asio::error::operation_aborted) co_return;
      if (ec) {
        log::warn("tls: accept: {}", ec.message());
        Timer pause(self->acceptor->get_executor(), std::chrono::milliseconds(100));
        const auto waited = co_await pause.async_wait(kAwait);
        static_cast<void>(waited);
        continue;
      }
      self->admit(std::move(socket));
    }
  }

  void admit(Socket socket) {
    ErrorInfo ec;
    const Tcp::endpoint peer = socket.remote_endpoint(ec);
    if (ec || stopping || connections.size() >= options.max_connections) return;
    socket.set_option(Tcp::no_delay(true), ec);
    if (auto fresh = reload(); !fresh) log::error("tls: the new certificate is not taken: {}", fresh.error().text());
    const bool v6 = peer.address().is_v6();
    std::string name = fmt::format("{}{}{}:{}", v6 ? "[" : "", peer.address().to_string(), v6 ? "]" : "", peer.port());
    const Executor executor = socket.get_executor();
    auto connection = std::make_shared<Connection>(shared_from_this(), std::move(socket), context, std::move(name));
    asio::co_spawn(executor, Connection::run(std::move(connection)), asio::detached);
  }

  rt::EventLoop& loop;
  Server& server;
  const TlsOptions options;
  std::optional<Acceptor> acceptor;
  std::uint16_t port = 0;
  bool stopped = false;  ///< its owner's
  // Loop thread.
  std::shared_ptr<ssl::context> context;
  std::array<Stamp, 2> stamps{};
  std::unordered_set<Connection*> connections;
  std::optional<std::promise<void>> gone;
  bool stopping = false;
};

TlsListener::TlsListener(rt::EventLoop& loop, Server& server, TlsOptions options)
    : impl_(std::make_shared<Impl>(loop, server, std::move(options))) {}

TlsListener::~TlsListener() { stop(); }

Result<void> TlsListener::start() {
  HELIO_CHECK_OK(impl_->reload());
  HELIO_TRY(acceptor, listen_on(impl_->loop.context().get_executor(), impl_->options.address, impl_->options.port));
  ErrorInfo ec;
  impl_->port = acceptor.local_endpoint(ec).port();
  impl_->acceptor.emplace(std::move(acceptor));
  asio::co_spawn(impl_->loop.context().get_executor(), Impl::accept_connections(impl_), asio::detached);
  return {};
}

void TlsListener::stop() {
  if (std::exchange(impl_->stopped, true) || !impl_->acceptor) return;
  HELIO_CHECK(!impl_->loop.on_loop(), "a listener stopped from its own loop");
  std::promise<void> gone;
  auto all_gone = gone.get_future();
  auto close = [impl = impl_, gone = std::move(gone)]() mutable {
    ErrorInfo ignored;
    impl->stopping = true;
    impl->acceptor->close(ignored);
    const std::vector<Impl::Connection*> open(impl->connections.begin(), impl->connections.end());
    for (Impl::Connection* connection : open) connection->shut();
    if (impl->connections.empty()) return gone.set_value();
    impl->gone = std::move(gone);
  };
  if (!impl_->loop.running()) return close();  // nothing runs, so there is nothing to wait for
  impl_->loop.post(std::move(close));
  all_gone.wait();
}

std::uint16_t TlsListener::port() const { return impl_->port; }

}  // namespace helio::net
