#include "net/upstream.h"

#include "net/socket_io.h"

#include <utility>

namespace helio::net {
namespace {

constexpr auto kKeep = std::chrono::seconds(10);  // servers keep a quiet connection for 15 s (Ray's agents) and more
constexpr std::size_t kMost = 256;

/// Nothing to read and not closed: bytes that nobody asked for would be taken for the next answer.
bool is_quiet(Socket& socket) {
  char byte = 0;
  ErrorInfo ec;
  socket.receive(asio::buffer(&byte, 1), Socket::message_peek, ec);
  return would_block(ec);
}

}  // namespace

std::optional<Socket> UpstreamPool::take(const Tcp::endpoint& to) {
  const auto found = idle_.find(to);
  if (found == idle_.end()) return std::nullopt;
  std::optional<Socket> out;
  while (!out && !found->second.empty()) {
    // The newest first: the others may end.
    Kept kept = std::move(found->second.back());
    found->second.pop_back();
    --count_;
    if (is_quiet(kept.socket)) out = std::move(kept.socket);
  }
  if (found->second.empty()) idle_.erase(found);
  return out;
}

void UpstreamPool::keep(const Tcp::endpoint& to, Socket socket) {
  if (closed_ || count_ >= kMost) return;
  idle_[to].push_back({std::move(socket), SteadyClock::now() + kKeep});
  ++count_;
  if (!armed_) arm();
}

void UpstreamPool::close() {
  closed_ = true;
  idle_.clear();
  count_ = 0;
  timer_.cancel();
}

void UpstreamPool::arm() {
  armed_ = true;
  timer_.expires_after(kKeep);
  timer_.async_wait([weak = weak_from_this()](const ErrorInfo& ec) {
    const auto self = weak.lock();
    if (!ec && self) self->expire();
  });
}

void UpstreamPool::expire() {
  armed_ = false;
  const auto now = SteadyClock::now();
  for (auto at = idle_.begin(); at != idle_.end();) {
    count_ -= std::erase_if(at->second, [now](const Kept& kept) { return kept.until <= now; });
    at = at->second.empty() ? idle_.erase(at) : std::next(at);
  }
  if (count_ > 0) arm();
}

}  // namespace helio::net
