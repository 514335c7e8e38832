#include "api/browser.h"
#include "api/ray_front.h"
#include "api/world_for_test.h"
#include "auth/sealer.h"
#include "base/hash.h"
#include "model/kinds.h"
#include "store/logs/file_log_store.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <filesystem>

namespace helio::api {
namespace {

template <class T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().text();
    std::abort();
  }
  return std::move(*result);
}

void must(Result<void> result) {
  if (result) return;
  ADD_FAILURE() << result.error().text();
  std::abort();
}

std::string temp_folder() {
  char name[] = "/tmp/helio-api-XXXXXX";
  if (mkdtemp(name) == nullptr) std::abort();
  return name;
}

/// What a Python with Ray answers to the probe.
Result<std::string> probe(const std::string&, const std::string&) {
  return "helio-probe:" + json::dump(json::Object{{"python", "3.11.7"}, {"ray", "2.60.0"}, {"commit", "abc"}}) + "\n";
}

}  // namespace

struct World::Parts {
  explicit Parts(World& world)
      : sealer(must(auth::SecretBoxSealer::open_file(world.home.sealing_key()))),
        tokens(*world.store, clock, rng),
        sessions(*world.store, clock, rng, tokens),
        endings(*world.store, clock, feed_executor, tokens, sessions),
        hub(*world.store, *world.log_store, clock,
            [](const NodeId& node) -> Result<model::Assignment> {
              model::Assignment out;
              out.node = node;
              out.generation = 1;
              return out;
            }),
        jobs(*world.store, *sealer, clock, rng, settings, world.home, world.log_store.get()),
        logs(*world.store, *world.log_store),
        images(*world.store, clock, probe),
        flavors(*world.store, clock, settings),
        packages(world.home, settings),
        ray_jobs(*world.store, jobs, packages, clock, rng),
        dashboards(*world.store, *sealer),
        ray_clients(*world.store, *sealer),
        feed(*world.store, feed_executor),
        context{.jobs = jobs,
                .logs = logs,
                .images = images,
                .flavors = flavors,
                .packages = packages,
                .ray_jobs = ray_jobs,
                .dashboards = dashboards,
                .ray_clients = ray_clients,
                .feed = feed,
                .hub = hub,
                .home = world.home,
                .settings = settings,
                .clock = clock,
                .tokens = tokens,
                .sessions = sessions,
                .endings = endings,
                .tails = tails,
                .version = HELIO_VERSION,
                .facts = [&world]() -> Result<DaemonView> {
                  DaemonView out;
                  out.version = HELIO_VERSION;
                  out.revision = world.store->revision();
                  return out;
                },
                .stop = [&world] { world.stops.release(); }} {}

  const Clock& clock = SystemClock::instance();
  SystemRng rng;
  model::Settings settings;
  rt::WorkerPool pool{4, 256, "test"};
  rt::SerialExecutor feed_executor{"feed"};
  rt::SerialExecutor tails{"tails"};
  std::unique_ptr<auth::SecretBoxSealer> sealer;
  auth::Tokens tokens;
  auth::Sessions sessions;
  auth::Endings endings;
  link::Hub hub;
  service::Jobs jobs;
  service::Logs logs;
  service::Images images;
  service::Flavors flavors;
  service::Packages packages;
  service::RayJobs ray_jobs;
  service::Dashboards dashboards;
  service::RayClients ray_clients;
  service::Feed feed;
  Context context;
  std::unique_ptr<net::Server> server;
};

World::World() {
  home.root = temp_folder();
  std::filesystem::create_directories(home.spool());
  std::filesystem::create_directories(home.packages());
  const Clock& clock = SystemClock::instance();
  store = must(store::open_sqlite({.path = ":memory:", .clock = clock, .memory = {}}));
  log_store = must(store::open_file_logs(home.logs(), clock));
  parts_ = std::make_unique<Parts>(*this);
  Parts& p = *parts_;
  using Role = model::AccessRole;
  for (const auto& [name, role] : {std::pair{"admin", Role::admin}, std::pair{"op", Role::op}, std::pair{"developer", Role::developer},
                                   std::pair{"other", Role::developer}, std::pair{"viewer", Role::viewer}}) {
    tokens_[name] = must(p.tokens.create("test", name, name, role, std::nullopt)).secret;
  }
  tokens_["member"] = must(p.tokens.create("test", "member", "member", Role::developer, std::nullopt, {{"default"}})).secret;
  tokens_["stranger"] = must(p.tokens.create("test", "stranger", "developer", Role::developer, std::nullopt, {{"team-b"}})).secret;
  model::Host host;
  host.id = HostId("local");
  host.capacity = {MilliCpu{8000}, 16_GiB, 8_GiB, 0};
  must(store->write([&](store::WriteTx& tx) { return tx.put(host, {}); }));
  must(service::ensure_default_flavors(*store, clock, p.settings));
  std::filesystem::create_directories(home.root + "/prefix/bin");
  for (const char* program : {"python", "ray"}) std::filesystem::create_symlink("/bin/true", home.root + "/prefix/bin/" + program);
  model::Image image;
  image.name = ImageId("default");
  image.prefix = home.root + "/prefix";
  must(p.images.add({"admin", Role::admin}, image));
  loop.start();
  net::Router router;
  mount(router, p.context);
  mount_ray_front(router, p.context);
  mount_browser(router, p.context);
  router.add_websocket("/agent/v1", p.hub.handler());
  routes = router.routes();
  net::ServerOptions options;
  options.spool_dir = home.spool();
  options.keep_alive_interval = 200ms;
  p.server = std::make_unique<net::Server>(loop, p.pool, std::move(router), options);
  must(p.server->start());
}

World::~World() {
  parts_->server->stop();
  parts_->hub.stop();
  parts_->feed_executor.stop();
  parts_->tails.stop();
  parts_->pool.stop();
  loop.stop();
  parts_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(home.root, ignored);
}

std::string World::token(const std::string& as) const {
  const auto found = tokens_.find(as);
  return found == tokens_.end() ? "hst_wrong" : found->second;
}

std::unique_ptr<net::HttpClient> World::client(const std::string& as) const {
  net::Headers headers;
  if (as != "none") headers.emplace_back("Authorization", "Bearer " + token(as));
  return must(net::HttpClient::create("http://127.0.0.1:" + std::to_string(parts_->server->port()), headers));
}

std::uint16_t World::port() const { return parts_->server->port(); }

void World::open_dashboard(const std::string& job, std::uint16_t port, const std::string& token) {
  change_attempt(job + "-1", [&](model::Attempt& row) { row.ray_version = token.empty() ? "2.30.0" : "2.60.0"; });
  must(store->write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(row, tx.get<model::Cluster>("c-" + job + "-1"));
    row.state = model::ClusterState::ready;
    row.dashboard = "http://127.0.0.1:" + std::to_string(port);
    HELIO_CHECK_OK(tx.put_secret("attempt/" + job + "-1/ray_token", parts_->sealer->seal(token)));
    return tx.put(row, {});
  }));
}

void World::open_ray_client(const std::string& job, std::uint16_t port, const std::string& token) {
  open_dashboard(job, 1, token);
  must(store->write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(row, tx.get<model::Node>(job + "-1-h"));
    row.address = "127.0.0.1";
    row.port_base = port - 2;
    return tx.put(row, {});
  }));
}

void World::close_dashboard(const std::string& job) {
  must(store->write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(row, tx.get<model::Cluster>("c-" + job + "-1"));
    row.state = model::ClusterState::gone;
    return tx.put(row, {});
  }));
}

std::string World::ws_url() const { return "ws://127.0.0.1:" + std::to_string(parts_->server->port()) + "/agent/v1"; }

net::ClientResponse World::send(const std::string& as, const std::string& method, const std::string& target, const std::string& body,
                                const net::Headers& headers) const {
  net::ClientRequest request;
  request.method = method;
  request.target = target;
  request.body = body;
  request.headers = headers;
  return must(client(as)->send(request));
}

std::string World::submit(const std::string& as) const {
  const auto response = send(as, "POST", "/v1/jobs", R"({"entrypoint":{"argv":["echo","hi"]}})");
  EXPECT_EQ(response.status, 201) << response.body;
  return std::string(must(json::parse(response.body)).at("id").get_string());
}

void World::start_attempt(const std::string& job) {
  model::Attempt attempt;
  attempt.id = AttemptId(job + "-1");
  attempt.job = JobId(job);
  attempt.cluster = ClusterId("c-" + attempt.id.value);
  attempt.state = model::AttemptState::running;
  model::Cluster cluster;
  cluster.id = attempt.cluster;
  cluster.attempt = attempt.id;
  cluster.job = attempt.job;
  model::Node node;
  node.id = NodeId(attempt.id.value + "-h");
  node.attempt = attempt.id;
  node.job = attempt.job;
  node.cluster = cluster.id;
  node.role = model::Role::head;
  node.state = model::NodeState::serving;
  node.token_hash = sha256_hex("agent-token");
  model::Placement placement;
  placement.node = node.id;
  placement.role = model::Role::head;
  attempt.placement = {placement};
  must(store->write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(row, tx.get<model::Job>(job));
    row.state = model::JobState::running;
    row.attempts = 1;
    row.current_attempt = attempt.id;
    HELIO_CHECK_OK(tx.put(row, {}));
    HELIO_CHECK_OK(tx.put(attempt, {}));
    HELIO_CHECK_OK(tx.put(cluster, {}));
    return tx.put(node, {});
  }));
}

void World::change_job(const std::string& id, const std::function<void(model::Job&)>& change) {
  must(store->write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(job, tx.get<model::Job>(id));
    change(job);
    store::Event event;
    event.type = "job.state";
    event.job = id;
    return tx.put(job, std::move(event));
  }));
}

void World::change_attempt(const std::string& id, const std::function<void(model::Attempt&)>& change) {
  must(store->write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(attempt, tx.get<model::Attempt>(id));
    change(attempt);
    store::Event event;
    event.job = attempt.job.value;
    return tx.put(attempt, std::move(event));
  }));
}

}  // namespace helio::api
