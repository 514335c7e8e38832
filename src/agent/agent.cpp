#include "agent/agent.h"

#include "agent/port_probe.h"
#include "base/log.h"
#include "proc/cgroup.h"
#include "proc/files.h"
#include "ray/log_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT: SIGKILL
#include <unistd.h>
#include <algorithm>
#include <utility>
#include <variant>

namespace helio::agent {

namespace {

constexpr std::string_view kVersion = "0.1.0";
constexpr Duration kChildLook = 50ms;  ///< until the children of `ray start` are found
constexpr int kDriverLooks = 100;      ///< then it runs on another node
constexpr Duration kDrainAgain = 5s;
constexpr Duration kUsageEvery = 5s;
constexpr Duration kDiskEvery = 10s;
constexpr Duration kMemoryEvery = 1s;
constexpr Duration kLastWord = 1s;         ///< for the daemon to record the last status
constexpr Duration kLastWordGone = 200ms;  ///< the same when told to be gone
constexpr Duration kLastLook = 20ms;
constexpr std::size_t kTail = 4096;
constexpr std::size_t kStackTail = 16384;  ///< of logs that end with a stack trace
constexpr int kMaxSteps = 50;              ///< at once; more would be a machine that never rests

ray::StartSpec start_spec(const model::Assignment& a) {
  ray::StartSpec spec;
  spec.head = a.role == model::Role::head;
  spec.prefix = a.prefix;
  spec.ray_version = a.ray_version;
  spec.temp_dir = a.temp_dir;
  spec.work_dir = a.work_dir;
  spec.address = a.address;
  spec.head_address = a.head_address;
  spec.ports = {a.port_base};
  spec.head_ports = {a.head_port_base};
  spec.node = a.ray_node_tag.empty() ? a.node.value : a.ray_node_tag;
  spec.group = a.group;
  spec.num_cpus = a.num_cpus;
  spec.num_gpus = a.num_gpus;
  spec.memory = a.memory;
  spec.object_store_memory = a.object_store_memory;
  spec.resources = a.resources;
  spec.labels = a.labels;
  spec.env = a.env;
  spec.token_file = a.ray_token_file;
  spec.drain_grace = a.drain_grace.d;
  spec.stop_grace = a.stop_grace.d;
  spec.log_monitor = a.ray.log_to_driver;
  spec.dashboard_full = a.ray.dashboard_full;
  return spec;
}

/// The last `bytes` of a file; empty when it cannot be read.
std::string file_tail(const std::string& path, std::size_t bytes) {
  const proc::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(bytes));
  std::string text(static_cast<std::size_t>(std::max<off_t>(size - from, 0)), '\0');
  const ssize_t n = ::pread(fd.get(), text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

bool append_line(const std::string& path, const std::string& text) {
  const std::string bytes = text + "\n";
  const proc::Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  return fd && ::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

node::Journal first_journal(const model::Assignment& assignment) {
  node::Journal journal = read_journal(assignment.work_dir);
  // Numbers of statuses grow over restarts: from the clock, or above what the last life has left.
  journal.sequence = std::max(journal.sequence, SystemClock::instance().now().us);
  if (const auto last = read_final(assignment.work_dir)) journal.sequence = std::max(journal.sequence, last->sequence);
  return journal;
}

bool fell(const std::optional<node::ProcessFact>& fact) { return fact && !fact->running; }

bool is_terminal(std::string_view status) { return status == "SUCCEEDED" || status == "FAILED" || status == "STOPPED"; }

}  // namespace

std::vector<LocalLog> local_logs(const std::string& work_dir) {
  return {{work_dir + "/agent.jsonl", "agent", "agent"},
          {work_dir + "/drain.log", "drain.log", "agent"},
          {work_dir + "/ray_start.log", "ray_start.log", "ray"}};
}

ShipperOptions shipper_options(const model::Assignment& assignment) {
  return {.temp_dir = assignment.submitter ? assignment.head_temp_dir : assignment.temp_dir,
          .submission_id = assignment.driver ? assignment.driver->submission_id : assignment.attempt.value,
          .driver_only = assignment.submitter,
          .locals = local_logs(assignment.work_dir),
          .log_limit = assignment.log_limit};
}

Agent::Agent(NodeFiles files, bool first_of_namespace)
    : files_(std::move(files)),
      first_(first_of_namespace),
      processes_(first_, files_.assignment.ray_node_tag.empty() ? files_.assignment.node.value : files_.assignment.ray_node_tag),
      work_dir_(files_.assignment.work_dir),
      event_file_(work_dir_ + "/agent.jsonl"),
      start_log_(work_dir_ + "/ray_start.log"),
      machine_(files_.assignment.node, std::string(kVersion), first_journal(files_.assignment)),
      usage_(processes_, files_.assignment.cgroup, {work_dir_, files_.assignment.temp_dir}) {
  written_journal_ = machine_.journal();
  const bool submitter = files_.assignment.submitter;
  auto command = submitter ? fail(ErrorCode::precondition_failed, "this job runs in a long-lived cluster; use the cluster's nodes")
                           : ray::start_command(start_spec(files_.assignment));
  if (command) {
    command_ = std::move(*command);
  } else {
    command_error_ = command.error().message();
  }
  pump_ = std::make_unique<LogPump>(loop_, shipper_options(files_.assignment),
                                    ShipperOut{.announce = [this](const model::StreamInfo& info) { return link_->send_stream(info); },
                                               .piece = [this](std::int32_t id, std::int64_t offset,
                                                               std::string_view bytes) { return link_->send_piece(id, offset, bytes); }},
                                    PumpEvents{.first_line =
                                                   [this] {
                                                     brain_.post([this] {
                                                       facts_.driver_first_line = true;
                                                       wake();
                                                     });
                                                   },
                                               .shipped =
                                                   [this](bool shipped) {
                                                     brain_.post([this, shipped] {
                                                       facts_.logs_shipped = shipped;
                                                       wake();
                                                     });
                                                   },
                                               .caught_up =
                                                   [this] {
                                                     brain_.post([this] {
                                                       facts_.logs_caught_up = true;
                                                       wake();
                                                     });
                                                   }});
  if (submitter) pump_->expect_session();
  cluster_ = std::make_unique<ClusterWatch>(
      http_, files_.assignment,
      [this](ClusterView view) { brain_.post([this, view = std::move(view)]() mutable { cluster_seen(std::move(view)); }); },
      [this](PostResult result) { brain_.post([this, result = std::move(result)] { submit_answered(result); }); });
  link_ = std::make_unique<DaemonLink>(
      loop_, brain_, [this] { return daemon_address(files_); }, files_.token,
      [this] {
        return model::AgentHello{.node = files_.assignment.node, .agent_version = std::string(kVersion), .generation = generation_};
      },
      link_handlers());
  execs_ = std::make_unique<Execs>(
      loop_, ExecOut{.output = [this](const std::string& id, std::string_view bytes) { return link_->send_exec_output(id, bytes); },
                     .done = [this](const std::string& id, std::optional<int> code,
                                    const std::string& error) { link_->send_exec_done(id, code, error); }});
  client_server_ = std::make_unique<ClientServer>(
      loop_, brain_, client_server_options(),
      [this](const std::string& id, std::optional<int> code, const std::string& why) { link_->send_exec_done(id, code, why); });
}

Agent::~Agent() {
  link_->stop();
  loop_.stop();
}

LinkHandlers Agent::link_handlers() {
  LinkHandlers handlers;
  handlers.on_welcome = [this] { brain_.post([this] { daemon_connected(); }); };
  handlers.on_lost = [this] {
    pump_->disconnected();
    brain_.post([this] {
      execs_->cancel_all();  // who asked has been told that they are lost
      client_server_->forget_all();
      wake();
    });
  };
  handlers.on_assignment = [this](model::Assignment assignment) {
    brain_.post([this, assignment = std::move(assignment)] {
      if (!machine_.assign(assignment)) return;
      generation_ = assignment.generation;
      event("assignment", fmt::format("generation {}, phase {}", assignment.generation, json::enum_name(assignment.phase)));
      wake();
    });
  };
  handlers.on_recorded = [this](std::int64_t sequence) {
    brain_.post([this, sequence] {
      recorded_ = std::max(recorded_, sequence);
      if (leaving_since_) leave_when_recorded();
    });
  };
  handlers.on_stream = [this](const model::StreamInfo& info) { pump_->resume(info); };
  handlers.on_acks = [this](std::vector<StreamAck> acks) { pump_->acknowledge(std::move(acks)); };
  handlers.on_exec = [this](ExecRequest request) {
    brain_.post([this, request = std::move(request)]() mutable { run_exec(std::move(request)); });
  };
  // On the same thread as their start, so that they come after it.
  handlers.on_exec_cancel = [this](std::string id) {
    brain_.post([this, id = std::move(id)] {
      execs_->cancel(id);
      client_server_->forget(id);
    });
  };
  handlers.on_drained = [this] { execs_->drained(); };
  return handlers;
}

int Agent::run() {
  loop_.start();
  reaper_ = proc::start_reaper(loop_);
  brain_.post([this] {
    event("agent_up", fmt::format("node {}, {}", files_.assignment.node.value, json::enum_name(files_.assignment.role)));
    machine_.assign(files_.assignment);
    generation_ = files_.assignment.generation;
    wake();
  });
  link_->start();
  meter_.post([this] { measure(); });
  if (files_.assignment.cgroup.empty() && files_.assignment.memory_limit.n > 0) meter_.after(kMemoryEvery, [this] { watch_memory(); });
  std::unique_lock lock(done_mutex_);
  done_changed_.wait(lock, [this] { return done_; });
  return exit_code_;
}

void Agent::terminate() {
  brain_.post([this] {
    terminating_ = true;
    event("signal", "SIGTERM: leaving");
    machine_.leave();
    wake();
  });
}

// --- the loop of the brain ------------------------------------------------------------------------------------------------------

bool Agent::going_down() const {
  return terminating_ || machine_.assignment().phase >= model::Phase::drained || machine_.status().fault.has_value() ||
         machine_.status().reached >= model::Phase::drained;
}

void Agent::refresh() {
  const SystemClock& clock = SystemClock::instance();
  facts_.now = clock.now();
  facts_.mono = clock.mono();
  facts_.daemon_connected = link_->connected();
  const bool something_fell = fell(facts_.ray_start) || fell(facts_.raylet) || fell(facts_.gcs) || fell(facts_.dashboard);
  look_for_oom();
  if (something_fell && !machine_.status().fault) facts_.start_log_tail = start_log_tail();
  // Looking at them all costs: only on the way down it matters.
  if (something_fell || facts_.disk_full || going_down())
    facts_.processes_left = processes_.any() || (leash_ && facts_.driver_process && facts_.driver_process->running);
}

bool Agent::look_for_oom() {
  if (files_.assignment.cgroup.empty()) return false;
  const Timestamp now = SystemClock::instance().now();
  const auto kills = proc::cgroup_oom_kills(files_.assignment.cgroup);
  const bool more = kills && *kills > facts_.oom_kills;
  if (more) {
    facts_.oom_kills = *kills;
    facts_.oom_after = oom_looked_;
  }
  oom_looked_ = now;
  return more;
}

void Agent::wake() {
  if (leaving_since_) return;
  brain_.cancel(again_timer_);
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    refresh();
    const node::Step step = machine_.step(facts_);
    for (const node::Action& action : step.actions) {
      std::visit([this](const auto& a) { execute(a); }, action);
    }
    after_step();
    if (leaving_since_) return;
    if (!step.again) return;
    if (step.again->count() > 0) {
      again_timer_ = brain_.after(*step.again, [this] { wake(); });
      return;
    }
  }
  log::warn("the machine asked for {} steps at once", kMaxSteps);
  again_timer_ = brain_.after(kLastLook, [this] { wake(); });
}

void Agent::after_step() {
  write_journal_if_changed();
  note_marks();
  publish();
}

void Agent::publish() {
  const model::AgentStatus& status = machine_.status();
  if (status.sequence == published_) return;
  if (link_->send_status(status)) published_ = status.sequence;
}

void Agent::note_marks() {
  const model::AgentStatus& status = machine_.status();
  for (const model::Mark& mark : status.marks) {
    if (noted_marks_.insert(mark.name).second && mark.name != "agent_up") event(mark.name, status.step);
  }
  if (status.fault && !std::exchange(noted_fault_, true)) event("fault", status.fault->cause + ": " + status.fault->message);
}

void Agent::write_journal_if_changed() {
  const node::Journal& journal = machine_.journal();
  const node::Journal& old = written_journal_;
  if (journal.submit_announced == old.submit_announced && journal.submit_refused == old.submit_refused &&
      journal.submitted_at == old.submitted_at) {
    return;
  }
  if (auto written = write_journal(work_dir_, journal); !written) {
    // Without its journal nothing may be submitted: the machine sees a full disk before it goes on.
    log::error("journal: {}", written.error().text());
    facts_.disk_full = true;
    return;
  }
  written_journal_ = journal;
}

void Agent::event(std::string_view what, const std::string& text) {
  const json::Object line{{"at", format_time(SystemClock::instance().now())}, {"event", what}, {"text", text}};
  if (!append_line(event_file_, json::dump(line))) log::warn("event {} could not be written: {}", what, text);
  pump_->look();
}

void Agent::daemon_connected() {
  pump_->connected();
  published_ = 0;
  wake();
  publish();  // also when this step changed nothing
}

// --- Ray ------------------------------------------------------------------------------------------------------------------------

void Agent::execute(const node::action::StartRay&) {
  facts_.ray_start = node::ProcessFact{.running = true, .exit_code = {}};
  std::string problem = command_error_;
  if (command_) {
    if (!command_->hook_path.empty()) {
      const std::string folder = command_->hook_path.substr(0, command_->hook_path.rfind('/'));
      auto made = proc::make_folders(folder);
      if (made) made = proc::write_file(command_->hook_path, ray::start_hook_source());
      if (!made) problem = made.error().message();
    }
    if (auto made = proc::make_folders(files_.assignment.temp_dir); !made) problem = made.error().message();
    if (auto made = make_shared_folders(); !made) problem = made.error().message();
  }
  if (command_ && problem.empty()) {
    auto started = proc::spawn(loop_, {.argv = command_->argv, .env = command_->env, .cwd = work_dir_, .stdout_file = start_log_},
                               [this](proc::ExitStatus status) { brain_.post([this, status] { ray_start_ended(status); }); });
    if (started) {
      ray_start_ = std::move(*started);
      pump_->expect_session();
      find_children();
      return;
    }
    problem = started.error().message();
  }
  // It goes where `ray start` itself would have said it: evidence is read from there.
  event("ray_start", problem);
  append_line(start_log_, problem);
  facts_.ray_start = node::ProcessFact{.running = false, .exit_code = 127};
  brain_.post([this] { wake(); });
}

/// What all attempts of the job share.
Result<void> Agent::make_shared_folders() {
  for (const char* name : {"HELIOSTAT_OUTPUT_DIR", "HELIOSTAT_CHECKPOINT_DIR"}) {
    const auto folder = files_.assignment.env.find(name);
    if (folder != files_.assignment.env.end()) HELIO_CHECK_OK(proc::make_folders(folder->second));
  }
  return {};
}

void Agent::ray_start_ended(proc::ExitStatus status) {
  facts_.ray_start = node::ProcessFact{.running = false, .exit_code = status.code};
  event("ray_start_ended", fmt::format("exit code {}", status.code));
  wake();
}

void Agent::find_children() {
  if (children_complete_ || !ray_start_ || fell(facts_.ray_start)) return;
  const RayChildren children = find_ray_children(ray_start_->pid());
  const bool head = files_.assignment.role == model::Role::head;
  bool found = false;
  const auto take = [&](Watched what, const std::optional<pid_t>& pid) {
    if (!pid || fact_of(what)) return;
    watch_process(what, *pid);
    found = true;
  };
  take(Watched::raylet, children.raylet);
  if (head) take(Watched::gcs, children.gcs);
  if (head) take(Watched::dashboard, children.dashboard);
  children_complete_ = facts_.raylet && (!head || (facts_.gcs && facts_.dashboard));
  if (!children_complete_) brain_.after(kChildLook, [this] { find_children(); });
  if (found) wake();
}

std::optional<node::ProcessFact>& Agent::fact_of(Watched what) {
  switch (what) {
    case Watched::raylet:
      return facts_.raylet;
    case Watched::gcs:
      return facts_.gcs;
    case Watched::dashboard:
      return facts_.dashboard;
    case Watched::driver:
      break;
  }
  return facts_.driver_process;
}

void Agent::watch_process(Watched what, pid_t pid) {
  const auto ended = [this, what] {
    brain_.post([this, what] {
      fact_of(what) = node::ProcessFact{.running = false, .exit_code = {}};
      if (what == Watched::driver) http_.post([this] { cluster_->poke(); });
      wake();
    });
  };
  fact_of(what) = node::ProcessFact{.running = true, .exit_code = {}};
  const auto ticks = proc::start_ticks(pid);
  auto watch = ticks ? proc::watch_pid(loop_, pid, *ticks, ended) : Result<std::shared_ptr<proc::Process>>(std::unexpected(ticks.error()));
  if (watch) {
    watched_[what] = std::move(*watch);
  } else {
    ended();
  }
}

void Agent::execute(const node::action::SignalRay& action) {
  if (!ray_start_) return;
  event("signal_ray", fmt::format("signal {}", action.signal));
  if (auto sent = ray_start_->signal(action.signal); !sent) log::info("ray start: {}", sent.error().text());
}

void Agent::execute(const node::action::DrainNode& action) {
  const auto row = std::ranges::find(node_of_ray_id_, action.node.value, &std::pair<const std::string, std::string>::second);
  if (!command_ || row == node_of_ray_id_.end() || going_down()) return;
  event("drain", action.node.value);
  const model::Assignment& a = files_.assignment;
  const auto again = [this, action](const std::string& why) {
    event("drain", fmt::format("{}: {}; once more", action.node.value, why));
    brain_.after(kDrainAgain, [this, action] {
      const auto& alive = facts_.rows_alive;
      if (std::ranges::find(alive, action.node) != alive.end()) execute(action);
    });
  };
  // As for a preemption: it is always accepted, and what is lost with the node is not charged to the retries of its tasks.
  auto started = proc::spawn(
      loop_,
      {.argv = {a.prefix + "/bin/ray", "drain-node", "--address", fmt::format("{}:{}", a.address, ray::Ports{a.port_base}.gcs()),
                "--node-id", row->first, "--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "the cluster was made smaller",
                "--deadline-remaining-seconds", "31536000"},
       .env = command_->exec_env,
       .cwd = work_dir_,
       .stdout_file = work_dir_ + "/drain.log"},
      [this, again](proc::ExitStatus status) {
        brain_.post([again, code = status.code] {
          if (code != 0) again(fmt::format("ray drain-node ended with {}", code));
        });
      });
  if (!started) return again(started.error().message());
  drains_[action.node] = std::move(*started);
}

void Agent::execute(const node::action::KillAll&) {
  event("kill_all", "ending every process of the node");
  processes_.kill_all();
  if (leash_) leash_->cut();
  if (ray_start_) static_cast<void>(ray_start_->signal(SIGKILL));  // also where it has lost its tag; gone already is fine
}

std::string Agent::start_log_tail() const {
  std::string out;
  const auto session = ray::find_session(files_.assignment.temp_dir);
  if (session && machine_.status().reached < model::Phase::joined) {
    for (const char* name : {"gcs_server.err", "raylet.err", "dashboard.err"}) {
      out += file_tail(*session + "/logs/" + name, kStackTail);
    }
  }
  return out + file_tail(start_log_, kTail);
}

// --- the cluster ----------------------------------------------------------------------------------------------------------------

void Agent::execute(const node::action::WatchGcsPort& action) {
  gcs_every_ = action.every;
  brain_.cancel(gcs_timer_);
  if (gcs_every_.count() > 0) look_at_gcs_port();
}

void Agent::look_at_gcs_port() {
  if (gcs_every_.count() <= 0) return;
  const model::Assignment& a = files_.assignment;
  const bool head = a.role == model::Role::head;
  if (port_accepts(head ? a.address : a.head_address, head ? a.port_base : a.head_port_base)) {
    facts_.gcs_port_open = true;
    gcs_every_ = Duration{0};
    brain_.post([this] { wake(); });
    return;
  }
  gcs_timer_ = brain_.after(gcs_every_, [this] { look_at_gcs_port(); });
}

void Agent::execute(const node::action::WatchCluster& action) {
  http_.post([this, every = action.every] { cluster_->set_period(every); });
}

void Agent::cluster_seen(ClusterView view) {
  if (view.api_up) facts_.api_up = *view.api_up;
  if (view.head_agent_up) facts_.head_agent_up = *view.head_agent_up;
  if (view.rows) {
    facts_.rows_alive.clear();
    facts_.rows_dead.clear();
    for (const ray::NodeRow& row : *view.rows) {
      node_of_ray_id_[row.ray_id] = row.node;
      auto& list = row.alive ? facts_.rows_alive : facts_.rows_dead;
      const NodeId node(row.node);
      if (std::find(list.begin(), list.end(), node) == list.end()) list.push_back(node);
    }
  }
  if (view.activity_asked) {
    facts_.cluster_busy = view.activity ? std::optional(view.activity->busy) : std::nullopt;
    facts_.cluster_last_end = view.activity ? view.activity->last_end : std::nullopt;
  }
  facts_.driver_absent = view.driver_absent;
  if (view.driver) {
    facts_.driver_known = true;
    facts_.driver_ray_status = view.driver->status;
    facts_.driver_error_type = view.driver->error_type;
    facts_.driver_message = view.driver->message;
    facts_.driver_exit_code = view.driver->exit_code;
    const auto node = node_of_ray_id_.find(view.driver->driver_node_id);
    if (node != node_of_ray_id_.end()) facts_.driver_log_node = node->second;
    if (is_terminal(facts_.driver_ray_status) && !facts_.driver_log_complete) {
      // Ray's record follows the end of the entrypoint, so all that it wrote is in the file by now.
      facts_.driver_log_complete = true;
      pump_->catch_up();
    }
    find_driver();
  }
  wake();
}

void Agent::find_driver() {
  if (facts_.driver_process || facts_.driver_ray_status != "RUNNING" || driver_looks_ >= kDriverLooks) return;
  ++driver_looks_;
  if (const auto pid = processes_.find_driver()) watch_process(Watched::driver, *pid);
}

void Agent::execute(const node::action::AnnounceSubmit&) { write_journal_if_changed(); }

void Agent::execute(const node::action::SubmitDriver&) {
  const auto& driver = machine_.assignment().driver;
  if (!driver) return;
  facts_.post = node::Facts::Post::pending;
  facts_.post_error.clear();
  facts_.driver_absent = false;
  model::DriverSpec spec = *driver;
  if (machine_.assignment().submitter) {
    if (auto taken = take_on_leash(spec); !taken) {
      return brain_.post([this, why = taken.error().message()] { submit_answered({node::Facts::Post::refused, true, why}); });
    }
  }
  http_.post([this, spec = std::move(spec)] { cluster_->submit(spec); });
}

Result<void> Agent::take_on_leash(model::DriverSpec& driver) {
  HELIO_CHECK_OK(make_shared_folders());
  if (!leash_) {
    HELIO_TRY(leash, Leash::hold(files_.assignment.temp_dir, [this](bool held) {
                brain_.post([this, held] {
                  facts_.driver_process = node::ProcessFact{.running = held, .exit_code = {}};
                  if (!held) http_.post([this] { cluster_->poke(); });
                  wake();
                });
              }));
    leash_ = std::move(leash);
  }
  driver.entrypoint = leash_->wrap(driver.entrypoint);
  return {};
}

void Agent::submit_answered(const PostResult& result) {
  facts_.post = result.post;
  facts_.post_final = result.final;
  facts_.post_error = result.error;
  facts_.driver_absent = false;
  if (result.post != node::Facts::Post::accepted) event("submit", result.error);
  wake();
}

void Agent::execute(const node::action::StopDriver& action) {
  event("stop_driver", action.kill ? "SIGKILL: it did not stop within its grace" : "asking Ray to stop it");
  if (!action.kill) return http_.post([this] { cluster_->stop_driver(); });
  if (leash_) return leash_->cut();
  const auto driver = watched_.find(Watched::driver);
  if (driver != watched_.end()) NodeProcesses::kill_session(driver->second->pid());
}

// --- the end --------------------------------------------------------------------------------------------------------------------

void Agent::execute(const node::action::FinishStreams&) { pump_->finish(); }

void Agent::execute(const node::action::Exit& action) { leave(action.code); }

void Agent::leave(int code) {
  exit_code_ = code;
  leaving_since_ = SystemClock::instance().mono();
  if (auto written = write_final(work_dir_, machine_.status()); !written) log::error("final status: {}", written.error().text());
  publish();
  leave_when_recorded();
}

void Agent::leave_when_recorded() {
  const bool gone = machine_.assignment().phase == model::Phase::gone || !machine_.status().logs_complete;
  const Duration patience = gone ? kLastWordGone : kLastWord;
  const bool waiting = link_->connected() && recorded_ < machine_.status().sequence;
  if (waiting && SystemClock::instance().mono() - *leaving_since_ < patience) {
    brain_.after(kLastLook, [this] { leave_when_recorded(); });
    return;
  }
  const std::scoped_lock lock(done_mutex_);
  done_ = true;
  done_changed_.notify_all();
}

ClientServerOptions Agent::client_server_options() {
  ClientServerOptions options;
  if (command_) {
    options.argv = command_->client_server;
    options.env = command_->exec_env;
  }
  options.cwd = work_dir_;
  options.log_folder = [temp_dir = files_.assignment.temp_dir]() -> Result<std::string> {
    HELIO_TRY(session, ray::find_session(temp_dir));
    return session + "/logs";
  };
  return options;
}

void Agent::run_exec(ExecRequest request) {
  const auto refuse = [&](const std::string& why) { link_->send_exec_done(request.id, std::nullopt, why); };
  if (!command_) return refuse(command_error_);
  if (!request.program.empty()) {
    if (request.program != model::program::kRayClientServer) return refuse("this agent knows no program '" + request.program + "'");
    if (going_down()) return refuse("the node is on its way down");
    event("ray_client_server", "a client asks for it");
    return client_server_->want(request.id);
  }
  execs_->run(std::move(request), {.env = command_->exec_env, .cwd = work_dir_});
}

// --- measuring ------------------------------------------------------------------------------------------------------------------

void Agent::measure() {
  const SystemClock& clock = SystemClock::instance();
  const MonoTime begin = clock.mono();
  bool full = false;
  if (begin >= disk_due_) {
    const Bytes disk = usage_.measure_disk();
    const Duration took = clock.mono() - begin;
    disk_due_ = clock.mono() + std::max<Duration>(kDiskEvery, took * 100);  // at most one hundredth of a core
    const Bytes limit = files_.assignment.disk_limit;
    full = (limit.n > 0 && disk > limit) || usage_.file_system_full();
  }
  brain_.post([this, usage = usage_.sample(), full] {
    machine_.set_usage(usage);
    const bool fills_up = full && !facts_.disk_full;
    facts_.disk_full = facts_.disk_full || full;
    if (look_for_oom() || fills_up) {
      wake();
    } else if (link_->connected()) {
      link_->send_status(machine_.status());
    }
  });
  meter_.after(kUsageEvery, [this] { measure(); });
}

void Agent::watch_memory() {
  const Bytes used = usage_.memory();
  if (used > files_.assignment.memory_limit) {
    brain_.post([this, used] {
      if (going_down()) return;
      event("memory", fmt::format("{} are over the limit of {}", format_bytes(used), format_bytes(files_.assignment.memory_limit)));
      ++facts_.oom_kills;  // before the kill: what falls now falls because of it
      facts_.oom_after = SystemClock::instance().now();
      processes_.kill_all();
      wake();
    });
  }
  meter_.after(kMemoryEvery, [this] { watch_memory(); });
}

}  // namespace helio::agent
