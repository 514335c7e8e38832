#include "net/server.h"

#include "base/check.h"
#include "base/log.h"
#include "net/listen.h"
#include "net/response_head.h"
#include "net/server_core.h"
#include "net/session.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <ctime>
#include <utility>
#include <vector>

namespace helio::net {

namespace {
constexpr std::size_t kRefusalsAtOnce = 256;  // connections over the limit that are still told so
constexpr Duration kSocketsCloseWithin = 200ms;
}  // namespace

ServerCore::ServerCore(rt::EventLoop& loop_in, rt::WorkerPool& pool_in, Router router_in, ServerOptions options_in)
    : loop(loop_in),
      pool(pool_in),
      router(std::move(router_in)),
      options(std::move(options_in)),
      upstreams(std::make_shared<UpstreamPool>(loop.context().get_executor())) {}

std::string_view ServerCore::date() {
  const std::int64_t second = std::time(nullptr);
  if (second != date_second_) {
    date_second_ = second;
    date_ = http_date(second);
  }
  return date_;
}

void ServerCore::release() {
  if (--live == 0 && gone_) std::exchange(gone_, std::nullopt)->set_value();
}

void ServerCore::close_all(std::promise<void> gone) {
  stopping = true;
  for (Session* session : sessions) session->shut();
  upstreams->close();
  const std::vector<WsConn*> open(websockets.begin(), websockets.end());
  for (WsConn* conn : open) {
    if (conn->cut_on_stop()) {
      conn->cut();
    } else {
      conn->close_within(1001, "the server stops", kSocketsCloseWithin);
    }
  }
  if (live == 0) {
    gone.set_value();
  } else {
    gone_ = std::move(gone);
  }
}

struct Server::Impl : ServerCore {
  using ServerCore::ServerCore;
  std::optional<Acceptor> acceptor;
  std::uint16_t port = 0;
  bool stopped = false;

  static Awaitable<void> accept_connections(std::shared_ptr<Impl> self) {
    while (self->acceptor->is_open()) {
      auto accepted = co_await self->acceptor->async_accept(kAwait);
      auto& [ec, socket] = accepted;
      if (ec == asio::error::operation_aborted) co_return;
      if (ec) {
        // Out of descriptors, most likely: those who are connected go on, and the backlog waits.
        log::warn("http: accept: {}", ec.message());
        Timer pause(self->acceptor->get_executor(), std::chrono::milliseconds(100));
        const auto waited = co_await pause.async_wait(kAwait);
        static_cast<void>(waited);
        continue;
      }
      admit(self, std::move(socket));
    }
  }

  static void admit(const std::shared_ptr<Impl>& self, Socket socket) {
    ErrorInfo ec;
    const Tcp::endpoint peer = socket.remote_endpoint(ec);
    if (ec || self->stopping) return;
    socket.non_blocking(true, ec);
    socket.set_option(Tcp::no_delay(true), ec);
    const std::size_t live = self->live;
    if (live >= self->options.max_connections + kRefusalsAtOnce) return;
    const bool full = live >= self->options.max_connections;
    const bool v6 = peer.address().is_v6();
    std::string name = fmt::format("{}{}{}:{}", v6 ? "[" : "", peer.address().to_string(), v6 ? "]" : "", peer.port());
    Session::start(self, std::move(socket), std::move(name), full ? Session::Mode::refuse : Session::Mode::serve);
  }
};

Server::Server(rt::EventLoop& loop, rt::WorkerPool& pool, Router router, ServerOptions options)
    : impl_(std::make_shared<Impl>(loop, pool, std::move(router), std::move(options))) {}

Server::~Server() { stop(); }

Result<void> Server::start() {
  HELIO_TRY(acceptor, listen_on(impl_->loop.context().get_executor(), impl_->options.address, impl_->options.port));
  ErrorInfo ec;
  impl_->port = acceptor.local_endpoint(ec).port();
  impl_->acceptor.emplace(std::move(acceptor));
  asio::co_spawn(impl_->loop.context().get_executor(), Impl::accept_connections(impl_), asio::detached);
  return {};
}

void Server::stop() {
  if (std::exchange(impl_->stopped, true) || !impl_->acceptor) return;
  HELIO_CHECK(!impl_->loop.on_loop(), "a server stopped from its own loop");
  std::promise<void> gone;
  auto all_gone = gone.get_future();
  auto close = [impl = impl_, gone = std::move(gone)]() mutable {
    ErrorInfo ignored;
    impl->acceptor->close(ignored);
    impl->close_all(std::move(gone));
  };
  if (!impl_->loop.running()) return close();  // nothing runs, so there is nothing to wait for
  impl_->loop.post(std::move(close));
  all_gone.wait();
}

std::uint16_t Server::port() const { return impl_->port; }
std::size_t Server::connections() const { return impl_->live; }

void Server::adopt(int descriptor, std::string peer) {
  Socket socket(impl_->loop.context().get_executor());
  ErrorInfo ec;
  socket.assign(Tcp::v4(), descriptor, ec);
  HELIO_CHECK(!ec, "a fresh descriptor is taken");
  socket.non_blocking(true, ec);
  if (impl_->stopping) return;
  const bool full = impl_->live >= impl_->options.max_connections;
  Session::start(impl_, std::move(socket), std::move(peer), full ? Session::Mode::refuse : Session::Mode::serve, Session::Transport::tls);
}

}  // namespace helio::net
