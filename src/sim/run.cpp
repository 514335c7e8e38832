#include "sim/run.h"

#include "base/check.h"
#include "sim/checks.h"
#include "sim/daemon.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <fmt/format.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

namespace helio::sim {
namespace {

constexpr Duration kSettleLimit = std::chrono::hours(3);  ///< after the last fault; everything has to end within it
constexpr Duration kQuietEnd = 150s;                      ///< two orphan sweeps after everything has ended
constexpr Duration kProgressEvery = 5s;
constexpr std::size_t kStoryLines = 60;
constexpr std::int64_t kStepsMax = 400'000;

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// A submission and what its user does later.
struct Client {
  model::JobSpec spec;
  std::string key;
  std::optional<Duration> stops_after;
  Duration comes_after{};
  std::optional<JobId> id;  ///< acknowledged
  bool refused = false;     ///< its long-lived cluster was not there
  bool stop_acknowledged = false;
};

class Run {
 public:
  Run(std::uint64_t seed, Bug bug, const std::string& folder)
      : seed_(seed), bug_(bug), rng_(seed), ids_(seed ^ 0x5eedULL), world_(time_, seed ^ 0xf00dULL, trouble(), defects()), home_{folder} {}

  Outcome go();

 private:
  provider::Trouble trouble();
  [[nodiscard]] provider::WorldDefects defects() const;
  Result<void> set_up();
  void plan();
  void plan_jobs();
  void plan_faults();
  void plan_takeover();
  model::JobSpec random_spec(int number, bool held);
  void make_guest(model::JobSpec& spec, const std::string& cluster);
  provider::Script script(const AttemptId& attempt) const;
  void submit(std::size_t client);
  void stop(std::size_t client);
  void scale(std::size_t client, std::int32_t workers);
  void start_daemon();
  void crash(Daemon* which);
  void progress();
  void sweep_daemons();
  store::Fault fault(std::int64_t number, std::int64_t crash_at, int daemon);
  void spoil_terminal();
  Duration within(Duration low, Duration high);
  bool step(MonoTime limit);
  Surroundings surroundings();

  std::uint64_t seed_;
  Bug bug_;
  SeededRng rng_;
  SeededRng ids_;
  provider::VirtualTime time_;
  provider::World world_;
  model::Home home_;
  model::Settings settings_;
  ToySealer sealer_;
  SimLogs logs_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Checks> checks_;
  std::vector<Client> clients_;
  std::int64_t newest_lease_ = 0;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Daemon> former_;  ///< was not told that it has a successor
  int starting_ = 0;                ///< number of the daemon whose constructor or start() runs
  int crashed_ = 0;                 ///< number of the daemon that shall be gone
  int daemon_number_ = 0;
  int former_number_ = 0;
  MonoTime quiet_at_;
  Outcome out_;
};

Duration Run::within(Duration low, Duration high) {
  return low + Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>((high - low).count()) + 1)));
}

provider::Trouble Run::trouble() {
  provider::Trouble out;
  const double scale = rng_.chance(0.3) ? 0 : rng_.chance(0.3) ? 3 : 1;
  out.disconnect *= scale;
  out.doubled *= scale;
  out.late *= scale;
  out.ensure_fails *= scale;
  out.ray_fails *= scale;
  out.post_unclear *= scale;
  out.brain_restart *= scale;
  return out;
}

provider::WorldDefects Run::defects() const {
  provider::WorldDefects out;
  out.submit_twice = bug_ == Bug::double_submit;
  out.forget_unsent = bug_ == Bug::lose_ack;
  out.sweep_nothing = bug_ == Bug::forget_orphan;
  out.same_ports = bug_ == Bug::forget_port;
  out.early_proof = bug_ == Bug::early_proof;
  out.double_capacity = bug_ == Bug::double_capacity;
  out.no_leash = bug_ == Bug::cut_leash;
  return out;
}

Surroundings Run::surroundings() {
  return {time_, world_,    *store_, logs_,         sealer_,
          ids_,  settings_, home_,   newest_lease_, [this](std::string what) { checks_->breach(std::move(what)); },
          bug_};
}

Result<void> Run::set_up() {
  HELIO_TRY(store, store::open_sqlite({.path = ":memory:", .clock = time_, .inline_mode = true, .memory = nullptr}));
  store_ = std::move(store);
  checks_ = std::make_unique<Checks>(*store_, time_, world_, logs_);
  const auto hosts = 1 + rng_.below(2);
  for (std::uint64_t i = 0; i < hosts; ++i) {
    model::Host host;
    host.id = HostId(fmt::format("host{}", i));
    host.capacity = {MilliCpu{4000 + static_cast<std::int64_t>(rng_.below(3)) * 2000}, 32_GiB, 16_GiB, 0};
    host.physical_cpu = host.capacity.cpu;
    host.isolation = "simulated";
    host.limits = "simulated";
    world_.add_host(std::move(host));
  }
  world_.set_scripts([this](const AttemptId& attempt) { return script(attempt); });
  store::Event event;
  event.actor = "sim";
  event.type = "pool.made";
  event.at = time_.now();
  return store_->write([&](store::WriteTx& tx) -> Result<void> {
    for (const auto& [name, cpus] : {std::pair{"head", 1000}, std::pair{"small", 1000}, std::pair{"big", 2000}}) {
      model::Flavor flavor;
      flavor.name = FlavorId(name);
      flavor.resources = {MilliCpu{cpus}, 2_GiB, 1_GiB, 0};
      HELIO_CHECK_OK(tx.put(flavor, event));
    }
    for (const model::Host& host : world_.hosts()) {
      model::Host row = host;
      HELIO_CHECK_OK(tx.put(row, event));
    }
    model::Image image;
    image.name = ImageId("default");
    image.prefix = "/opt/ray";
    image.python_version = "3.11.7";
    image.ray_version = "2.60.0";
    return tx.put(image, event);
  });
}

model::JobSpec Run::random_spec(int number, bool held) {
  model::JobSpec spec;
  spec.name = fmt::format("{}-{}", held ? "held" : "job", number);
  spec.entrypoint.argv = std::vector<std::string>{"python", "train.py"};
  spec.head.flavor = "head";
  if (const auto workers = rng_.below(4); workers > 0) {
    model::WorkerGroup group;
    group.count = static_cast<std::int32_t>(std::min<std::uint64_t>(workers, 2));
    group.flavor = rng_.chance(0.3) && group.count == 1 ? "big" : "small";
    spec.workers.push_back(group);
  }
  spec.priority = static_cast<std::int32_t>(1 + rng_.below(9));
  spec.retries.user = static_cast<std::int32_t>(rng_.below(3));
  spec.retries.backoff.d = within(100ms, 3s);
  spec.retries.max_backoff.d = 20s;
  spec.limits.readiness.d = within(30s, 120s);
  spec.limits.stop_grace.d = std::chrono::seconds(1 + rng_.below(8));
  if (rng_.chance(0.2)) spec.limits.run.d = within(2s, 30s);
  if (rng_.chance(0.1)) spec.limits.total.d = within(20s, 120s);
  if (rng_.chance(0.1)) spec.limits.pending.d = within(1s, 60s);
  if (rng_.chance(0.2)) spec.completion = model::Completion::all;
  if (rng_.chance(0.15)) {
    spec.retention.nodes = rng_.chance(0.5) ? model::Retain::head : model::Retain::all;
    spec.retention.time.d = std::chrono::seconds(5 + rng_.below(60));
  }
  if (rng_.chance(0.2)) spec.env.push_back({"PASSWORD", "hunter2-clear-text", true});
  if (!held && rng_.chance(0.2)) {
    spec.type = model::JobType::cluster;
    spec.name = fmt::format("cluster-{}", number);
    spec.entrypoint = {};
    spec.completion = model::Completion::driver;
    spec.limits.idle = Span{std::chrono::seconds(10 + rng_.below(60))};
  }
  return spec;
}

/// The same job, in a long-lived cluster.
void Run::make_guest(model::JobSpec& spec, const std::string& cluster) {
  spec.cluster = cluster;
  spec.head = {};
  spec.workers.clear();
  spec.env.clear();
  spec.completion = model::Completion::driver;
  spec.retention = {};
}

provider::Script Run::script(const AttemptId& attempt) const {
  SeededRng rng(seed_ ^ hash_of(attempt.value));
  provider::Script out;
  out.run = Duration(100'000 + static_cast<std::int64_t>(rng.below(rng.chance(0.3) ? 30'000'000 : 3'000'000)));
  out.exit_code = rng.chance(0.75) ? 0 : rng.chance(0.7) ? 1 : 137;
  out.stubborn = rng.chance(0.2);
  const std::string job = attempt.value.substr(0, attempt.value.rfind('-'));
  const auto found = checks_->jobs().find(JobId(job));
  if (found == checks_->jobs().end()) return out;
  const model::JobSpec& spec = found->second.spec;
  out.hangs = spec.name.starts_with("held") || (spec.limits.run.d > Duration(0) && rng.chance(0.3));
  return out;
}

void Run::plan_jobs() {
  const auto count = 1 + rng_.below(4);
  const Client* cluster = nullptr;
  clients_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    Client client;
    const bool held = rng_.chance(0.15);
    client.spec = random_spec(static_cast<int>(i), held);
    client.key = fmt::format("key-{}", i);
    if (held || rng_.chance(0.2)) client.stops_after = within(0s, 40s);
    client.comes_after = within(0s, 20s);
    if (client.spec.type == model::JobType::job && cluster != nullptr && rng_.chance(0.6)) {
      make_guest(client.spec, cluster->spec.name);
      client.comes_after = cluster->comes_after + within(1s, 40s);
    }
    clients_.push_back(std::move(client));
    if (clients_.back().spec.type == model::JobType::cluster) cluster = &clients_.back();
    for (auto left = clients_.back().spec.type == model::JobType::cluster ? rng_.below(3) : 0; left > 0; --left) {
      const auto workers = static_cast<std::int32_t>(1 + rng_.below(3));
      time_.after(clients_.back().comes_after + within(1s, 60s), [this, i, workers] { scale(i, workers); });
    }
    time_.after(clients_.back().comes_after, [this, i] { submit(i); });
  }
}

void Run::plan_faults() {
  quiet_at_ = time_.mono() + within(30s, 90s);
  const Duration span = quiet_at_ - time_.mono();
  using Blow = provider::World::Blow;
  constexpr std::array kBlows{Blow::agent, Blow::agent, Blow::raylet, Blow::gcs, Blow::ray_start, Blow::driver, Blow::out_of_memory};
  for (auto left = rng_.below(4); left > 0; --left) {
    const Blow blow = kBlows[rng_.below(kBlows.size())];
    time_.after(within(2s, span), [this, blow] { world_.strike(blow); });
  }
  for (auto left = rng_.below(3); left > 0; --left) {
    const Duration length = within(1s, 50s);
    time_.after(within(2s, span), [this, length] { world_.partition(length); });
  }
  if (rng_.chance(0.1)) {
    time_.after(within(2s, span), [this] {
      world_.reboot();
      if (former_) crash(former_.get());
      if (daemon_) crash(daemon_.get());
    });
  }
  if (rng_.chance(0.1)) {
    const Duration jump = std::chrono::minutes(static_cast<std::int64_t>(rng_.below(240)) - 120);
    time_.after(within(2s, span), [this, jump] { time_.jump_wall(jump); });
  }
  for (auto left = rng_.below(3); left > 0; --left) {
    time_.after(within(0s, span), [this] {
      if (daemon_) crash(daemon_.get());
    });
  }
  if (rng_.chance(0.25)) time_.after(within(1s, span), [this] { plan_takeover(); });
}

/// A second daemon takes the lease while the first one goes on, unaware.
void Run::plan_takeover() {
  if (!daemon_ || former_) return;
  former_ = std::move(daemon_);
  former_number_ = daemon_number_;
  start_daemon();
  time_.after(within(1s, 20s), [this] {
    if (former_) crash(former_.get());
  });
}

store::Fault Run::fault(std::int64_t number, std::int64_t crash_at, int daemon) {
  if (time_.mono() >= quiet_at_) return store::Fault::none;
  if (number == crash_at) {
    crashed_ = daemon;
    ++out_.crashes;
    return rng_.chance(0.5) ? store::Fault::crash_before_commit : store::Fault::crash_after_commit;
  }
  return rng_.chance(0.002) ? store::Fault::fail : store::Fault::none;
}

void Run::start_daemon() {
  if (daemon_) return;
  const int number = ++out_.daemons;
  const std::int64_t crash_at = rng_.chance(0.6) ? 1 + static_cast<std::int64_t>(rng_.below(rng_.chance(0.5) ? 25 : 150)) : 0;
  daemon_number_ = number;
  daemon_ =
      std::make_unique<Daemon>(surroundings(), [this, crash_at, number](std::int64_t n) { return fault(n, crash_at, number); }, number);
  if (auto started = daemon_->start(); !started) {
    daemon_.reset();
    time_.after(1s, [this] { start_daemon(); });
  }
}

void Run::crash(Daemon* which) {
  if (which == former_.get()) {
    former_.reset();
    return;
  }
  daemon_.reset();
  time_.after(rng_.chance(0.3) ? within(0s, 20ms) : within(0s, 10s), [this] { start_daemon(); });
}

void Run::sweep_daemons() {
  if (crashed_ != 0) {
    const int number = std::exchange(crashed_, 0);
    if (former_ && number == former_number_)
      crash(former_.get());
    else if (daemon_ && number == daemon_number_)
      crash(daemon_.get());
  }
  if (former_ && former_->ended()) former_.reset();
  if (daemon_ && daemon_->ended()) crash(daemon_.get());
}

void Run::submit(std::size_t index) {
  Client& client = clients_[index];
  if (client.id || client.refused) return;
  time_.after(1s, [this, index] { submit(index); });  // unless it is answered
  if (!daemon_) return;
  if (bug_ == Bug::lose_submission && rng_.chance(0.3)) daemon_->buggy().lose_next();
  auto job = daemon_->jobs().submit({"alice", model::AccessRole::developer}, client.spec, {"POST /v1/jobs", client.key, client.key});
  if (!job) {
    if (job.error().code() == ErrorCode::unavailable) return;
    const bool for_its_cluster = job.error().code() == ErrorCode::not_found || job.error().code() == ErrorCode::precondition_failed;
    client.refused = client.spec.cluster && for_its_cluster;
    if (client.refused) return;
    checks_->breach("submit: " + job.error().text());
    return;
  }
  client.id = job->id;
  if (client.stops_after) time_.after(*client.stops_after, [this, index] { stop(index); });
}

void Run::stop(std::size_t index) {
  Client& client = clients_[index];
  if (client.stop_acknowledged) return;
  time_.after(1s, [this, index] { stop(index); });
  if (!daemon_) return;
  const auto job = checks_->jobs().find(*client.id);
  const bool live = job != checks_->jobs().end() && !model::is_terminal(job->second.state);
  if (bug_ == Bug::lose_stop && live) daemon_->buggy().lose_next();
  auto stopped = daemon_->jobs().stop({"alice", model::AccessRole::developer}, *client.id, model::StopReason::user);
  if (stopped || stopped.error().code() == ErrorCode::not_found) client.stop_acknowledged = true;
}

void Run::scale(std::size_t index, std::int32_t workers) {
  const Client& client = clients_[index];
  if (!daemon_ || !client.id || client.spec.workers.empty()) return;
  auto scaled = daemon_->jobs().scale({"alice", model::AccessRole::developer}, *client.id, {std::nullopt, workers});
  if (scaled || scaled.error().code() == ErrorCode::precondition_failed || scaled.error().code() == ErrorCode::resource_exhausted) return;
  if (scaled.error().code() != ErrorCode::unavailable) checks_->breach("scale: " + scaled.error().text());
}

/// The planted bug of a job that changes its mind.
void Run::spoil_terminal() {
  for (const auto& [id, job] : checks_->jobs()) {
    if (!model::is_terminal(job.state) || !rng_.chance(0.2)) continue;
    model::Job changed = job;
    changed.state = job.state == model::JobState::failed ? model::JobState::succeeded : model::JobState::failed;
    static_cast<void>(store_->write([&](store::WriteTx& tx) { return tx.put(changed, {}); }));
    return;
  }
}

void Run::progress() {
  checks_->progress(daemon_ ? std::optional(daemon_->started()) : std::nullopt);
  if (bug_ == Bug::rewrite_terminal) spoil_terminal();
  time_.after(kProgressEvery, [this] { progress(); });
}

bool Run::step(MonoTime limit) {
  bool more = true;
  try {
    more = time_.run_one(limit);
  } catch (const store::Crash&) {
    HELIO_CHECK(crashed_ != 0, "a crash comes from a daemon");
  }
  sweep_daemons();
  checks_->after_step();
  ++out_.steps;
  return more;
}

Outcome Run::go() {
  out_.seed = seed_;
  if (auto ready = set_up(); !ready) {
    out_.breaches.push_back("set-up: " + ready.error().text());
    return out_;
  }
  plan_jobs();
  plan_faults();
  time_.post([this] { start_daemon(); });
  time_.after(kProgressEvery, [this] { progress(); });
  MonoTime limit = quiet_at_ + kSettleLimit;
  bool ending = false;
  while (checks_->breaches().empty() && step(limit)) {
    if (out_.steps > kStepsMax) checks_->breach("the world does not come to rest");
    const bool submitted = std::ranges::all_of(clients_, [](const Client& client) { return client.id || client.refused; });
    if (!ending && time_.mono() >= quiet_at_ && submitted && daemon_ && !former_ && checks_->all_over()) {
      ending = true;
      limit = std::min(limit, time_.mono() + kQuietEnd);
    }
  }
  if (checks_->breaches().empty()) {
    std::set<JobId> acknowledged;
    for (const Client& client : clients_) {
      if (client.id) acknowledged.insert(*client.id);
    }
    checks_->at_end(acknowledged);
  }
  former_.reset();
  daemon_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(home_.root + "/jobs", ignored);
  out_.breaches = checks_->breaches();
  out_.story = checks_->story(kStoryLines);
  out_.jobs = static_cast<int>(checks_->jobs().size());
  for (const auto& [id, job] : checks_->jobs()) out_.attempts += job.attempts;
  out_.writes = store_->revision();
  out_.virtual_seconds = static_cast<double>(time_.mono().us) / 1e6;
  return out_;
}

}  // namespace

Outcome run_world(std::uint64_t seed, Bug bug, const std::string& folder) { return Run(seed, bug, folder).go(); }

}  // namespace helio::sim
