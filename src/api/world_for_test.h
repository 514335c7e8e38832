#pragma once
// The real router and server over a store in memory, with a token of each role; no controller runs, so nothing changes by itself.

#include "api/route.h"
#include "net/client.h"
#include "store/log_store.h"

#include <functional>
#include <map>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

namespace helio::api {

class World {
 public:
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Names of `as`: admin, op, developer, other (a developer too), viewer; member (a developer of the workspace `default` alone), stranger
  /// (another token of the principal `developer`, for the workspace `team-b` alone); none (no header), wrong (an unknown token).
  [[nodiscard]] std::string token(const std::string& as) const;
  /// One more name of `as`.
  void add_token(const std::string& as, const std::string& secret) { tokens_[as] = secret; }
  std::unique_ptr<net::HttpClient> client(const std::string& as) const;
  net::ClientResponse send(const std::string& as, const std::string& method, const std::string& target, const std::string& body = {},
                           const net::Headers& headers = {}) const;
  [[nodiscard]] std::string ws_url() const;
  [[nodiscard]] std::uint16_t port() const;
  /// Submits a job of one head; its id.
  std::string submit(const std::string& as = "developer") const;
  /// An attempt with a live head node, and its agent's token "agent-token".
  void start_attempt(const std::string& job);
  /// The cluster of a started attempt is up, its dashboard at `port` of this machine; an empty token: its Ray knows none.
  void open_dashboard(const std::string& job, std::uint16_t port, const std::string& token);
  /// The cluster of a started attempt is up, and its head's client server is, or would be, at `port` of this machine.
  void open_ray_client(const std::string& job, std::uint16_t port, const std::string& token);
  void close_dashboard(const std::string& job);
  void change_job(const std::string& id, const std::function<void(model::Job&)>& change);
  void change_attempt(const std::string& id, const std::function<void(model::Attempt&)>& change);

  model::Home home;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::LogStore> log_store;
  std::vector<std::pair<std::string, std::string>> routes;  ///< (method, pattern) of everything that is served
  std::counting_semaphore<> stops{0};                       ///< released once for each stop that was asked for
  rt::EventLoop loop;

 private:
  struct Parts;
  std::map<std::string, std::string> tokens_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace helio::api
