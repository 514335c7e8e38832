#include "daemon/wiring.h"

#include "api/browser.h"
#include "api/ray_front.h"
#include "api/route.h"
#include "auth/sealer.h"
#include "auth/tokens.h"
#include "base/log.h"
#include "control/assignment.h"
#include "control/loop.h"
#include "daemon/daemon_file.h"
#include "daemon/machine.h"
#include "link/hub.h"
#include "net/server.h"
#include "net/tls_listener.h"
#include "proc/files.h"
#include "proc/process.h"
#include "provider/local/local_provider.h"
#include "rt/event_loop.h"
#include "service/catalog.h"
#include "service/jobs.h"
#include "service/logs.h"
#include "service/packages.h"
#include "store/lock_file.h"
#include "store/logs/file_log_store.h"
#include "store/observations.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <unistd.h>
#include <atomic>
#include <utility>

namespace helio::daemon {
namespace {

constexpr std::size_t kWorkers = 8;
constexpr std::size_t kWorkQueue = 1024;
constexpr Duration kProbeLimit = 30s;

Result<void> make_home(const model::Home& home) {
  HELIO_CHECK_OK(proc::make_folders(home.root, 0700));
  // What a former daemon was receiving when it died.
  HELIO_CHECK_OK(proc::wipe(home.spool()));
  for (const std::string& folder : {home.spool(), home.packages(), home.root + "/jobs"}) HELIO_CHECK_OK(proc::make_folders(folder, 0700));
  return {};
}

Result<std::string> probe_python(const std::string& python, const std::string& code) {
  proc::SpawnOptions options;
  // Isolated: neither the daemon's environment nor a user's packages change what the image is.
  options.argv = {python, "-I", "-c", code};
  options.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/nonexistent"};
  return proc::run_and_capture(options, kProbeLimit);
}

Result<model::Settings> read_settings(const Options& options) {
  HELIO_TRY(settings, load_settings(options.home));
  if (options.listen) HELIO_CHECK_OK(apply_listen(*options.listen, settings.server));
  if (!is_loopback(settings.server.address) && !settings.server.tls) {
    return fail(ErrorCode::precondition_failed,
                "{} can be reached from other machines, and that needs TLS: give server.tls in config.yaml a certificate and its key, or "
                "listen on 127.0.0.1",
                settings.server.address);
  }
  return std::move(settings);
}

constexpr std::string_view kLoopback = "127.0.0.1";

std::string url_of(std::string_view scheme, std::string_view address, std::uint16_t port) {
  const bool v6 = address.contains(':');
  return fmt::format("{}://{}{}{}:{}", scheme, v6 ? "[" : "", address, v6 ? "]" : "", port);
}

/// Not refused: such a flavor can only be made while a daemon runs.
Result<void> warn_of_missing_flavors(store::Store& store, const model::PoolSettings& pool) {
  HELIO_TRY(flavors, store::list<model::Flavor>(store));
  for (const auto& [field, name] : {std::pair("head_flavor", pool.head_flavor), std::pair("worker_flavor", pool.worker_flavor)}) {
    if (std::ranges::find(flavors.items, name, [](const model::Flavor& flavor) { return flavor.name.value; }) != flavors.items.end())
      continue;
    log::warn(
        "config.yaml, $.pool.{}: there is no flavor '{}'; jobs that do not name one are refused until `helio flavors set {}` makes it",
        field, name, name);
  }
  return {};
}

/// What exists before anything is wired, so that the rest can refer to it.
struct Ground {
  std::unique_ptr<store::LockFile> lock;
  model::Settings settings;
  std::string agent;
  std::unique_ptr<auth::SecretBoxSealer> sealer;
  std::unique_ptr<store::Store> store;
  store::Lease lease;
  std::unique_ptr<store::LogStore> logs;
};

Result<Ground> open_ground(const Options& options, const Clock& clock) {
  Ground out;
  const model::Home& home = options.home;
  HELIO_CHECK_OK(proc::make_folders(home.root, 0700));
  const std::string holder = fmt::format("heliostatd {} pid {}", HELIO_VERSION, ::getpid());
  auto lock = store::LockFile::acquire(home.lock(), holder);
  if (!lock) {
    if (lock.error().code() != ErrorCode::conflict) return fail(std::move(lock.error()).during("lock " + home.lock()));
    return fail(std::move(lock.error()).during("a daemon runs on " + home.root + " already"));
  }
  out.lock = std::move(*lock);
  HELIO_TRY(settings, read_settings(options));
  HELIO_TRY(agent, find_agent(options.agent));
  HELIO_CHECK_OK(make_home(home));
  auto sealer = auth::SecretBoxSealer::open_file(home.sealing_key());
  if (!sealer) return fail(std::move(sealer.error()).during("sealing key"));
  store::SqliteOptions sqlite{.path = home.store(), .clock = clock, .memory = {}};
  auto opened = store::open_sqlite(sqlite);
  if (!opened) return fail(std::move(opened.error()).during("open " + home.store()));
  HELIO_TRY(lease, (*opened)->take_lease(holder));
  auto logs = store::open_file_logs(home.logs(), clock);
  if (!logs) return fail(std::move(logs.error()).during("open " + home.logs()));
  out.settings = std::move(settings);
  out.agent = std::move(agent);
  out.sealer = std::move(*sealer);
  out.store = std::move(*opened);
  out.lease = lease;
  out.logs = std::move(*logs);
  return out;
}

}  // namespace

struct Daemon::Impl {
  Impl(const Options& options, Ground made, std::function<void()> request)
      : home(options.home), ground(std::move(made)), request_stop(std::move(request)) {}

  Result<void> start();
  Result<void> listen();
  Result<void> listen_tls();
  std::unique_ptr<net::Server> make_server(std::uint16_t port);
  Result<api::DaemonView> facts();
  Result<void> look_after_files();
  void stop();

  const Clock& clock = SystemClock::instance();
  SystemRng rng;
  model::Home home;
  Ground ground;
  std::function<void()> request_stop;
  std::atomic<bool> ready{false};
  std::string url;
  std::optional<std::string> public_url;  ///< with TLS
  model::DaemonFile file;
  Timestamp started = clock.now();
  MonoTime started_mono = clock.mono();

  rt::EventLoop loop;
  rt::WorkerPool workers{kWorkers, kWorkQueue, "http"};
  rt::SerialExecutor feed_executor{"feed"};
  rt::SerialExecutor tails{"tails"};
  rt::SerialExecutor background{"background"};
  rt::SerialExecutor control_executor{"control"};

  auth::Tokens tokens{*ground.store, clock, rng};
  auth::Sessions sessions{*ground.store, clock, rng, tokens};
  auth::Endings endings{*ground.store, clock, feed_executor, tokens, sessions};
  control::AssignmentContext assignments{*ground.sealer, ground.settings, home, interface_of_nodes(), {}};
  provider::LocalProvider provider{loop, clock, home, ground.settings.pool, ground.agent};
  link::Hub hub{*ground.store, *ground.logs, clock,
                [this](const NodeId& node) { return control::build_assignment(*ground.store, assignments, node); },
                link::HubOptions{.version = HELIO_VERSION}};
  service::Jobs jobs{*ground.store, *ground.sealer, clock, rng, ground.settings, home, ground.logs.get()};
  service::Logs logs{*ground.store, *ground.logs};
  service::Images images{*ground.store, clock, probe_python};
  service::Flavors flavors{*ground.store, clock, ground.settings};
  service::Packages packages{home, ground.settings};
  service::RayJobs ray_jobs{*ground.store, jobs, packages, clock, rng};
  service::Dashboards dashboards{*ground.store, *ground.sealer};
  service::RayClients ray_clients{*ground.store, *ground.sealer};
  service::Feed feed{*ground.store, feed_executor};
  api::Context context{.jobs = jobs,
                       .logs = logs,
                       .images = images,
                       .flavors = flavors,
                       .packages = packages,
                       .ray_jobs = ray_jobs,
                       .dashboards = dashboards,
                       .ray_clients = ray_clients,
                       .feed = feed,
                       .hub = hub,
                       .home = home,
                       .settings = ground.settings,
                       .clock = clock,
                       .tokens = tokens,
                       .sessions = sessions,
                       .endings = endings,
                       .tails = tails,
                       .version = HELIO_VERSION,
                       .facts = [this] { return facts(); },
                       .stop = [this] { request_stop(); }};
  std::unique_ptr<net::Server> server;
  std::unique_ptr<net::TlsListener> tls;
  std::unique_ptr<control::Loop> control;
  bool stopped = false;
};

Result<void> Daemon::Impl::start() {
  HELIO_CHECK_OK(tokens.ensure_admin(home.admin_token()));
  HELIO_CHECK_OK(service::ensure_default_flavors(*ground.store, clock, ground.settings));
  HELIO_CHECK_OK(warn_of_missing_flavors(*ground.store, ground.settings.pool));
  loop.start();
  HELIO_CHECK_OK(listen());
  // Before `ready`, which agents wait for.
  assignments.url = public_url.value_or(url);
  const std::string host_and_port = url.substr(std::string_view("http://").size());
  control = std::make_unique<control::Loop>(control::Deps{
      .store = *ground.store,
      .provider = provider,
      .logs = *ground.logs,
      .clock = clock,
      .executor = control_executor,
      .sealer = *ground.sealer,
      .rng = rng,
      .settings = ground.settings,
      .home = home,
      .lease = ground.lease,
      .daemon_url = "ws://" + host_and_port + "/agent/v1",
      .interface = assignments.interface,
      .url = assignments.url,
      .background = &background,
      // What an agent could not deliver is on disk; it has to be known before its node's end is judged.
      .salvage =
          [this](const NodeId& node, const provider::NodePlan&) {
            const auto status = provider.final_status(node);
            if (!status) return;
            if (auto recorded = store::record_status(*ground.store, *status, clock.now()); !recorded) {
              log::warn("node {}: its last status cannot be recorded: {}", node.value, recorded.error().text());
            }
          },
      .lease_lost =
          [this] {
            log::error("another daemon has taken over this store");
            request_stop();
          },
  });
  HELIO_CHECK_OK(control->start());
  ready = true;
  file.pid = ::getpid();
  HELIO_TRY(ticks, proc::start_ticks(::getpid()));
  file.start_ticks = ticks;
  file.boot_id = proc::boot_id();
  file.url = url;
  file.version = HELIO_VERSION;
  return write_daemon_file(home, file);
}

std::unique_ptr<net::Server> Daemon::Impl::make_server(std::uint16_t port) {
  net::Router router;
  api::mount(router, context);
  api::mount_ray_front(router, context);
  api::mount_browser(router, context);
  router.add_websocket("/agent/v1", [this, accept = hub.handler()](net::Request& request) -> net::WsAccept {
    // The controllers take stock first: connections that came before would be marked as closed by them.
    if (!ready.load()) {
      net::WsAccept later;
      later.refuse = net::problem(Error(ErrorCode::unavailable, "the daemon is starting"));
      return later;
    }
    return accept(request);
  });
  net::ServerOptions options;
  const model::ServerSettings& settings = ground.settings.server;
  options.address = settings.tls ? kLoopback : settings.address;
  options.port = port;
  options.spool_dir = home.spool();
  // No page of another site, and no dashboard (whose code is a job's), may frame what we say and read it.
  options.always = {{"Content-Security-Policy", "frame-ancestors 'none'"}, {"X-Content-Type-Options", "nosniff"}};
  return std::make_unique<net::Server>(loop, workers, std::move(router), options);
}

Result<void> Daemon::Impl::listen() {
  const auto& settings = ground.settings.server;
  // With TLS the port that was asked for is its own; ours is for this machine alone, and any will do.
  const bool any_port = settings.port == 0 || settings.tls;
  const auto former = any_port ? former_port(home) : std::nullopt;
  server = make_server(former.value_or(static_cast<std::uint16_t>(any_port ? 0 : settings.port)));
  auto bound = server->start();
  if (!bound && former) {
    // Somebody else has the port by now. Agents read daemon.json, and find us at another one.
    server = make_server(0);
    bound = server->start();
  }
  if (!bound) return fail(std::move(bound.error()).during(fmt::format("listen on {}:{}", settings.address, settings.port)));
  url = url_of("http", settings.tls ? kLoopback : settings.address, server->port());
  return settings.tls ? listen_tls() : Result<void>();
}

Result<void> Daemon::Impl::listen_tls() {
  const auto& settings = ground.settings.server;
  net::TlsOptions options;
  options.address = settings.address;
  options.port = static_cast<std::uint16_t>(settings.port);
  options.certificate = settings.tls->certificate;
  options.key = settings.tls->key;
  tls = std::make_unique<net::TlsListener>(loop, *server, options);
  if (auto bound = tls->start(); !bound) {
    return fail(std::move(bound.error()).during(fmt::format("listen with TLS on {}:{}", settings.address, settings.port)));
  }
  public_url = url_of("https", settings.address, tls->port());
  log::info("TLS at {}", *public_url);
  return {};
}

Result<api::DaemonView> Daemon::Impl::facts() {
  using model::JobState;
  api::DaemonView out;
  out.version = HELIO_VERSION;
  out.pid = ::getpid();
  out.home = home.root;
  out.url = url;
  out.public_url = public_url;
  out.started = started;
  out.uptime = Span{clock.mono() - started_mono};
  out.revision = ground.store->revision();
  out.agents = static_cast<std::int64_t>(hub.connected());
  HELIO_TRY(queued, feed.count_jobs({JobState::queued}));
  HELIO_TRY(active, feed.count_jobs({JobState::starting, JobState::running, JobState::stopping}));
  HELIO_TRY(log_bytes, ground.logs->total_bytes());
  out.queued = queued;
  out.active = active;
  out.connections = static_cast<std::int64_t>(server->connections());
  const OwnUse use = own_use();
  out.memory = use.memory;
  out.threads = use.threads;
  out.logs = Bytes{log_bytes};
  return out;
}

Result<void> Daemon::Impl::look_after_files() {
  if (!ground.lock->is_in_place()) {
    return fail(ErrorCode::conflict, "{} is gone or another file: this folder is no longer this daemon's", home.lock());
  }
  if (is_written(home, file)) return {};
  log::warn("{} is missing or was changed; it is written again", home.daemon_file());
  // Whoever looks for us finds the lock at least; the next look tries again.
  if (auto written = write_daemon_file(home, file); !written) log::warn("{}", written.error().text());
  return {};
}

void Daemon::Impl::stop() {
  if (std::exchange(stopped, true)) return;
  if (tls) tls->stop();
  if (server) server->stop();
  hub.stop();
  if (control) control->stop();
  control_executor.stop();
  background.stop();
  feed_executor.stop();
  tails.stop();
  workers.stop();
}

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() { stop(); }

Result<std::unique_ptr<Daemon>> Daemon::start(const Options& options, std::function<void()> request_stop) {
  HELIO_TRY(ground, open_ground(options, SystemClock::instance()));
  auto impl = std::make_unique<Impl>(options, std::move(ground), std::move(request_stop));
  if (auto started = impl->start(); !started) {
    impl->stop();
    return fail(std::move(started.error()));
  }
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

const std::string& Daemon::url() const { return impl_->url; }
Result<void> Daemon::look_after_files() { return impl_->look_after_files(); }
void Daemon::stop() { impl_->stop(); }

}  // namespace helio::daemon
