#include "net/client.h"

#include "net/client_socket.h"
#include "net/response_head.h"
#include "net/response_parser.h"
#include "net/target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

namespace helio::net {

namespace {

constexpr std::size_t kReadBuffer = 64U << 10U;
constexpr std::size_t kFileBuffer = 256U << 10U;

/// The body of a request that comes from a file.
class BodyFile {
 public:
  BodyFile() = default;
  ~BodyFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  BodyFile(const BodyFile&) = delete;
  BodyFile& operator=(const BodyFile&) = delete;

  Result<void> open(const std::string& path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return fail(system_error(errno, "open " + path));
    struct stat status{};
    if (::fstat(fd_, &status) != 0) return fail(system_error(errno, "look at " + path));
    if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, "{} is no regular file", path);
    size_ = static_cast<std::uint64_t>(status.st_size);
    path_ = path;
    return {};
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// The piece at `offset`; the file must not have become shorter.
  Result<std::string_view> read(std::uint64_t offset) {
    buffer_.resize(kFileBuffer);
    const std::size_t want = std::min<std::uint64_t>(buffer_.size(), size_ - offset);
    while (true) {
      const ssize_t n = ::pread(fd_, buffer_.data(), want, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(system_error(errno, "read " + path_));
      if (n == 0) return fail(ErrorCode::conflict, "{} became shorter while it was sent", path_);
      return std::string_view(buffer_.data(), static_cast<std::size_t>(n));
    }
  }

 private:
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::string path_;
  std::vector<char> buffer_;
};

using OnData = std::function<bool(std::string_view)>;

class BlockingClient final : public HttpClient {
 public:
  BlockingClient(Url base, Headers defaults, std::string roots)
      : base_(std::move(base)), defaults_(std::move(defaults)), socket_(cancel_, std::move(roots)) {}

  Result<ClientResponse> send(const ClientRequest& request) override { return exchange(request, nullptr); }
  Result<ClientResponse> stream(const ClientRequest& request, OnData on_data) override { return exchange(request, &on_data); }
  void cancel() override { cancel_.raise(); }

 private:
  /// One try. `retry`: it failed, but the server cannot have acted on it.
  struct Try {
    Result<ClientResponse> result;
    bool retry = false;
  };
  struct Progress {
    MonoTime deadline;
    std::size_t sent = 0;
    bool all_sent = false;
    bool answer_begun = false;
  };

  Result<ClientResponse> exchange(const ClientRequest& request, OnData* on_data) {
    if (cancel_.take()) return fail(ErrorCode::cancelled, "cancelled");
    BodyFile file;
    if (!request.body_file.empty()) HELIO_CHECK_OK(file.open(request.body_file));
    HELIO_TRY(head, head_of(request, request.body_file.empty() ? request.body.size() : file.size()));
    const MonoTime deadline = now() + request.deadline;
    bool reused = socket_.is_open();
    if (reused && socket_.is_stale()) {
      socket_.close();
      reused = false;
    }
    Try tried = once(request, head, file, on_data, deadline);
    if (tried.retry && reused) tried = once(request, head, file, on_data, deadline);
    return std::move(tried.result);
  }

  Result<std::string> head_of(const ClientRequest& request, std::uint64_t body_size) const {
    const auto has_space = [](std::string_view text) {
      return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; });
    };
    if (request.method.empty() || has_space(request.method)) return fail(ErrorCode::invalid_argument, "bad method '{}'", request.method);
    if (!request.target.starts_with('/') || has_space(request.target) || request.target.contains('#')) {
      return fail(ErrorCode::invalid_argument, "bad request target '{}'", request.target);
    }
    std::string head = request.method + " " + base_.path + request.target + " HTTP/1.1\r\nHost: " + base_.authority + "\r\n";
    const auto add = [&head](const Headers& headers) -> Result<void> {
      for (const auto& [name, value] : headers) {
        if (!is_safe_header(name, value)) return fail(ErrorCode::invalid_argument, "bad header '{}'", name);
        head += name + ": " + value + "\r\n";
      }
      return {};
    };
    Headers defaults = defaults_;
    std::erase_if(defaults, [&](const auto& entry) { return find_header(request.headers, entry.first).has_value(); });
    HELIO_CHECK_OK(add(defaults));
    HELIO_CHECK_OK(add(request.headers));
    if (body_size > 0 || request.method == "POST" || request.method == "PUT" || request.method == "PATCH") {
      head += "Content-Length: " + std::to_string(body_size) + "\r\n";
    }
    head += "\r\n";
    return head;
  }

  Try once(const ClientRequest& request, const std::string& head, BodyFile& file, OnData* on_data, MonoTime deadline) {
    Progress progress{.deadline = deadline};
    Result<ClientResponse> response = try_once(request, head, file, on_data, progress);
    if (response) return {std::move(response), false};
    socket_.close();
    const bool harmless = progress.sent == 0 || request.method == "GET" || request.method == "HEAD";
    const bool retry = response.error().code() == ErrorCode::unavailable && !progress.answer_begun && harmless;
    return {std::move(response), retry};
  }

  Result<ClientResponse> try_once(const ClientRequest& request, const std::string& head, BodyFile& file, OnData* on_data,
                                  Progress& progress) {
    if (!socket_.is_open()) HELIO_CHECK_OK(socket_.connect(base_, progress.deadline));
    HELIO_CHECK_OK(send_all(request, head, file, on_data != nullptr, progress));
    return receive_all(request, on_data, progress);
  }

  Result<void> send_all(const ClientRequest& request, const std::string& head, BodyFile& file, bool streams, Progress& progress) {
    HELIO_TRY(sent, socket_.send(head, request.body_file.empty() ? std::string_view(request.body) : std::string_view(), progress.deadline,
                                 progress.sent));
    progress.all_sent = sent == ClientSocket::Sent::all;
    for (std::uint64_t offset = 0; progress.all_sent && offset < file.size();) {
      HELIO_TRY(piece, file.read(offset));
      if (streams) progress.deadline = now() + request.deadline;
      HELIO_TRY(piece_sent, socket_.send({}, piece, progress.deadline, progress.sent));
      progress.all_sent = piece_sent == ClientSocket::Sent::all;
      offset += piece.size();
    }
    return {};
  }

  Result<ClientResponse> receive_all(const ClientRequest& request, OnData* on_data, Progress& progress) {
    ClientResponse response;
    bool too_large = false;
    const OnData on_body = [&](std::string_view bytes) {
      if (on_data != nullptr && response.status / 100 == 2) return (*on_data)(bytes);
      too_large = response.body.size() + bytes.size() > request.response_limit;
      if (!too_large) response.body.append(bytes);
      return !too_large;
    };
    std::optional<ResponseParser> parser;
    const auto begin = [&] {
      response.headers.clear();
      parser.emplace(response.status, response.headers, on_body);
      parser->skip(request.method == "HEAD");
    };
    begin();
    std::string rest;  // received, not yet parsed
    while (true) {
      HELIO_TRY(bytes, socket_.receive(buffer_, progress.deadline));
      if (on_data != nullptr) progress.deadline = now() + request.deadline;
      boost::system::error_code ec;
      if (bytes.empty()) {
        if (!parser->got_some()) return fail(ErrorCode::unavailable, "{} closed the connection without an answer", base_.authority);
        parser->put_eof(ec);
        if (ec) return fail(ErrorCode::unavailable, "{} closed the connection in the middle of its answer", base_.authority);
        socket_.close();
        return response;
      }
      progress.answer_begun = true;
      rest.append(bytes);
      while (!ec && !rest.empty() && !parser->is_done()) {
        rest.erase(0, parser->feed(rest, ec));
        if (ec || !parser->is_done() || response.status / 100 != 1) break;
        begin();  // that was a 100 Continue: the answer is still to come
      }
      if (too_large) return fail(ErrorCode::resource_exhausted, "the response is larger than {} bytes", request.response_limit);
      if (ec == boost::system::errc::operation_canceled) {
        socket_.close();
        return response;
      }
      if (ec) return fail(ErrorCode::unavailable, "malformed answer of {}: {}", base_.authority, ec.message());
      if (!parser->is_done()) continue;
      if (!parser->keep_alive() || !progress.all_sent || !rest.empty()) socket_.close();
      return response;
    }
  }

  static MonoTime now() { return SystemClock::instance().mono(); }

  const Url base_;
  const Headers defaults_;
  CancelFlag cancel_;
  ClientSocket socket_;
  std::vector<char> buffer_ = std::vector<char>(kReadBuffer);
};

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::create(std::string base_url, Headers default_headers, std::string roots) {
  while (base_url.ends_with('/')) base_url.pop_back();
  HELIO_TRY(url, parse_url(base_url, "http"));
  if (url.path.contains('?')) return fail(ErrorCode::invalid_argument, "bad URL '{}': query in a base URL", base_url);
  return std::make_unique<BlockingClient>(std::move(url), std::move(default_headers), std::move(roots));
}

}  // namespace helio::net
