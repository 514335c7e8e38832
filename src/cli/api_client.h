#pragma once
// The daemon's HTTP API as seen by commands: finds it, authenticates, turns problem documents back into errors.

#include "base/json/json.h"
#include "cli/context.h"
#include "cli/daemon_process.h"
#include "model/cluster.h"
#include "model/job.h"
#include "net/client.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::cli {

/// Percent-encoded query string: "?a=b&c=d"; pairs with an empty value are left out.
std::string query(const std::vector<std::pair<std::string, std::string>>& pairs);

/// One connection to the daemon. The token of this home goes to no process but the daemon that wrote daemon.json. One thread at a time;
/// make another for a second thread.
class ApiClient {
 public:
  /// Resolves URL and token now, connects on the first request.
  /// Errors: unavailable when no daemon runs, unauthenticated when there is no token to be found.
  static Result<std::unique_ptr<ApiClient>> connect(const Context& context);

  /// Targets start with "/v1/". Errors: those of the daemon, with code, path and arguments; unavailable when it does not answer.
  Result<json::Value> get(const std::string& target, Duration deadline = 30s);
  /// A null body is none.
  Result<json::Value> send(const std::string& method, const std::string& target, const json::Value& body, const net::Headers& headers = {});
  Result<void> remove(const std::string& target);
  Result<bool> exists(const std::string& target);
  Result<void> put_file(const std::string& target, const std::string& file);
  /// Body in pieces; `on_data` returns false to stop. `deadline` is without progress.
  Result<void> stream(const net::ClientRequest& request, const std::function<bool(std::string_view)>& on_data);
  /// Like stream(), and gives the response's headers back.
  Result<net::Headers> download(const std::string& target, const std::function<bool(std::string_view)>& on_data);

  /// Every page of a list route: the members of "items".
  Result<json::Array> list(const std::string& target, std::size_t at_most = 0);
  Result<model::Job> job(const std::string& id);
  Result<std::vector<model::Attempt>> attempts(const std::string& id);
  Result<std::vector<model::Node>> nodes(const std::string& id);
  /// The id that a user means: a full id, "last" for the newest job, a name, or a unique prefix. Of several jobs with that name it is the
  /// only one that has not ended, or the newest when all have.
  /// Errors: not_found; conflict naming the candidates when several live, or begin so.
  Result<std::string> resolve_job(const std::string& what);
  /// The same of several, before anything is done to one of them; a job that is meant twice comes once.
  Result<std::vector<std::string>> resolve_jobs(const std::vector<std::string>& whats);

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  ApiClient(std::string url, std::unique_ptr<net::HttpClient> http, std::optional<model::DaemonFile> daemon)
      : url_(std::move(url)), http_(std::move(http)), daemon_(std::move(daemon)) {}
  /// A request may open a new connection, by when the port can be another program's.
  [[nodiscard]] Result<void> check_daemon() const;
  Result<net::ClientResponse> exchange(const net::ClientRequest& request);
  [[nodiscard]] Error describe(Error error) const;

  std::string url_;
  std::unique_ptr<net::HttpClient> http_;
  std::optional<model::DaemonFile> daemon_;  ///< none when the user named the URL
};

/// Where the daemon is now, and what it is told. Errors: see ApiClient::connect().
struct DaemonAddress {
  std::string url;
  std::string token;
  std::optional<model::DaemonFile> file;  ///< none when the user named the URL
};
Result<DaemonAddress> daemon_address(const Context& context);

/// The token that connect() sends. Error: unauthenticated when there is none to be found.
Result<std::string> token_of(const Context& context);

/// The one of `jobs` (newest first) that a name or the beginning of an id means; see ApiClient::resolve_job.
Result<std::string> choose_job(const std::vector<model::Job>& jobs, const std::string& what, Timestamp now);

/// Error of a problem document; internal with the start of the body when it is none.
Error problem_error(int status, std::string_view body);

/// GET /v1/healthz answers within `deadline`.
bool daemon_answers(const std::string& url, Duration deadline, const std::string& roots = {});

/// Decodes a list as typed structs; unknown fields are ignored.
template <class T>
Result<std::vector<T>> decode_items(const json::Array& items) {
  std::vector<T> out;
  out.reserve(items.size());
  for (const json::Value& item : items) {
    HELIO_TRY(decoded, json::decode<T>(item, json::Unknown::ignore));
    out.push_back(std::move(decoded));
  }
  return out;
}

}  // namespace helio::cli
