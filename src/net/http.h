#pragma once
// Plain request and response structs: what everything outside of net/ sees of HTTP.

#include "base/clock.h"
#include "base/error.h"
#include "net/cord.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace helio::net {

using Headers = std::vector<std::pair<std::string, std::string>>;
/// Case-insensitive; the first match.
std::optional<std::string_view> find_header(const Headers& headers, std::string_view name);

struct Request {
  std::string method;                         ///< upper case
  std::string target;                         ///< as it was sent: path and query, encoded
  std::string path;                           ///< percent-decoded, without query
  std::map<std::string, std::string> query;   ///< decoded; of doubled names the last
  std::map<std::string, std::string> params;  ///< {name} parts of the route
  Headers headers;
  std::string body;       ///< empty for spooled bodies
  std::string body_file;  ///< routes with spool: path of a temporary file that holds the body; deleted after the handler
  std::string peer;       ///< "127.0.0.1:54321"
  bool secure = false;    ///< came over TLS

  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const { return find_header(headers, name); }
};

/// A body that is made piece by piece (SSE, log follow, large files).
class BodySource {
 public:
  struct Piece {
    enum class Kind {
      data,
      pending,
      end,
      failed,  ///< the rest cannot be had: the connection is closed without the last chunk, by which the client knows it
    } kind = Kind::end;
    std::string bytes;
  };
  virtual ~BodySource() = default;
  /// Worker thread, never two at once. `pending`: nothing now; the server calls again after the waker, or after `keep_alive()`.
  virtual Piece next() = 0;
  /// Set once before the first next(). The waker may be called from any thread, any number of times, also after the client has gone.
  virtual void set_waker(std::function<void()> waker) = 0;
  /// Sent when a connection was silent for 15 s (an SSE comment, say). Empty: nothing is sent.
  virtual std::string keep_alive() { return {}; }
};

struct Response;

/// Where a request is carried on to. The server copies the exchange between its client and that address as it comes, in both directions;
/// an upgrade becomes a tunnel. Hop-by-hop headers stay on their side.
struct Forward {
  std::string address;  ///< an IP address, literally
  std::uint16_t port = 0;
  std::string target;             ///< path and query, encoded
  Headers headers;                ///< of the client; Host, Connection, Content-Length and what is for one hop stay behind
  Headers set;                    ///< of our own, instead of the client's
  Headers add;                    ///< to the head of the response
  std::vector<std::string> drop;  ///< headers of the response that stay behind
  std::string
      location_base;  ///< "Location: /x" of the answer becomes <location_base>x, another one stays behind; empty: passed on as it is
  /// The answer when nothing came from there. Loop thread, must not block; empty: a problem document, 502 or 504.
  std::function<Response(const Error& why)> failed;
};

/// Bytes of one direction of a tunnel, changed on their way. Loop thread.
class ByteFilter {
 public:
  virtual ~ByteFilter() = default;
  /// Appends to `out` what goes on in the place of `bytes`. False: nothing shall go on any more, the tunnel is cut.
  virtual bool pass(std::string_view bytes, std::string& out) = 0;
};

/// A request that becomes a plain connection to another address: it must ask for an upgrade to `protocol` (426 if it does not), is answered
/// 101 once somebody listens there, and from then on every byte is copied in both directions.
struct Tunnel {
  std::string protocol;  ///< as in the header Upgrade
  std::string address;   ///< an IP address, literally
  std::uint16_t port = 0;
  std::string what;      ///< who listens there, for people: "the server"
  Duration patience{0};  ///< how long nobody need listen there yet; then 504
  /// Called each time when nobody listens: a place to make that somebody will. An error ends the tries and is the answer. Loop thread, must
  /// not block.
  std::function<Result<void>()> refused;
  std::unique_ptr<ByteFilter> filter;  ///< of what the client sends; may be empty
};

struct Response {
  int status = 200;
  Headers headers;  ///< Content-Length, Transfer-Encoding, Date, Connection are the server's
  std::string body;
  std::shared_ptr<const std::string> shared_body;  ///< used instead of body when set: no copy
  std::unique_ptr<BodySource> source;              ///< used instead of body when set: chunked
  std::unique_ptr<Forward> forward;                ///< used instead of everything else when set
  std::shared_ptr<Cord> cord;                      ///< ends it early; only what may go on for long has one
  std::unique_ptr<Tunnel> tunnel;                  ///< the same

  static Response json(int status, std::string text);
  static Response text(int status, std::string text);
};

/// RFC 9457 document of an error: {type, title, status, code, detail, path?, args?}; the status belongs to its code.
Response problem(const Error& error);
/// The same with another status, such as 413 or 507.
Response problem(const Error& error, int status);

/// Case-insensitive, of names.
bool same_header(std::string_view a, std::string_view b);
/// Percent-encodes one path segment or query value.
std::string url_encode(std::string_view text);
/// "Not Found"; "Status" for numbers that have no name.
std::string_view status_title(int status);

}  // namespace helio::net
