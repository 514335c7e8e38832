// connect: Ray Client of a job's cluster through the daemon, for one command or until Ctrl-C.

#include "cli/api_client.h"
#include "cli/client_python.h"
#include "cli/context.h"
#include "cli/local_file.h"
#include "net/port_forward.h"

#include <poll.h>
#include <signal.h>  // NOLINT: sigaddset, kill
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>

namespace helio::cli {
namespace {

constexpr int kSwitching = 101;
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

struct ConnectFlags {
  std::string job;
  std::uint16_t port = 0;
  bool any_version = false;
};

/// Signals of this process as a descriptor; threads that are made later do not get them either.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int number : kPassedOn) sigaddset(&set_, number);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    fd_ = UniqueFd(::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// As they were: what a command begins with.
  [[nodiscard]] const sigset_t& before() const { return before_; }
  [[nodiscard]] std::optional<signalfd_siginfo> take() const {
    signalfd_siginfo info{};
    const bool whole = ::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    return whole ? std::optional(info) : std::nullopt;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
  UniqueFd fd_;
};

/// Says once what keeps clients out; they try again and again.
class Complaints {
 public:
  void add(const Result<net::ClientResponse>& answer) {
    const Error why = answer ? problem_error(answer->status, answer->body) : answer.error();
    const std::scoped_lock lock(mutex_);
    if (said_.insert(why.text()).second) fmt::print(stderr, "helio: a Ray Client was not let through: {}\n", why.text());
  }

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

Result<net::UpgradeTo> way_to(const Context& context, const std::string& job) {
  HELIO_TRY(daemon, daemon_address(context));
  net::UpgradeTo to;
  to.url = daemon.url;
  to.target = "/v1/jobs/" + net::url_encode(job) + "/ray-client/tunnel";
  to.protocol = "ray-client";
  to.headers = {{"Authorization", "Bearer " + daemon.token}, {"User-Agent", "helio"}};
  to.roots = context.roots;
  return to;
}

struct Cluster {
  RayAndPython runs;
  std::string python;  ///< on the daemon's machine
};

Result<Cluster> cluster_of(ApiClient& api, const std::string& job) {
  HELIO_TRY(reply, api.get("/v1/jobs/" + net::url_encode(job) + "/ray-client"));
  const json::Object* object = reply.if_object();
  const auto text = [object](const char* name) {
    const json::Value* value = object == nullptr ? nullptr : object->if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
  };
  return Cluster{{text("ray_version"), text("python_version")}, text("python")};
}

std::string describe(const RayAndPython& runs) {
  return fmt::format("Ray {}{}", runs.ray, runs.python.empty() ? "" : ", Python " + runs.python);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

/// What the command shall see: that cluster, and no token of another one.
std::vector<std::string> environment_for(std::uint16_t port, bool any_version) {
  std::vector<std::string> out = own_environment();
  std::erase_if(out, [](const std::string& entry) { return entry.starts_with("RAY_ADDRESS=") || entry.starts_with("RAY_AUTH_MODE="); });
  out.push_back(fmt::format("RAY_ADDRESS=ray://127.0.0.1:{}", port));
  // The daemon adds the cluster's own; one that Ray finds lying around here would come before it, and be wrong.
  out.emplace_back("RAY_AUTH_MODE=disabled");
  if (any_version) out.emplace_back("RAY_IGNORE_VERSION_MISMATCH=1");
  return out;
}

/// Error: precondition_failed with what to do, when the command is a Python that the cluster would refuse.
Result<void> check_versions(const Cluster& cluster, const std::string& program) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
  const auto interpreter = interpreter_of(program, path == nullptr ? "" : path);
  if (!interpreter) {
    fmt::print(stderr, "helio: which Python `{}` runs is not known; Ray Client needs that of the cluster: {}\n", program,
               describe(cluster.runs));
    return {};
  }
  HELIO_TRY(has, ask_python(*interpreter, own_environment()));
  const bool here = ::access(cluster.python.c_str(), X_OK) == 0;
  if (const auto why = why_no_client(cluster.runs, *interpreter, has, here ? cluster.python : "")) {
    return fail(ErrorCode::precondition_failed, "{}", *why);
  }
  return {};
}

Result<pid_t> start(const std::vector<std::string>& argv, const std::vector<std::string>& env, const sigset_t& mask) {
  const auto pointers = [](const std::vector<std::string>& words) {
    std::vector<char*> out;
    // The system's call does not write through these pointers.
    for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
    out.push_back(nullptr);
    return out;
  };
  const std::vector<char*> args = pointers(argv);
  const std::vector<char*> variables = pointers(env);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, args[0], nullptr, &attributes, args.data(), variables.data());
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return fail(system_error(failed, "run " + argv[0]));
  return pid;
}

/// Exit code, 128 + n when signal n ended it. What a terminal sends goes to the command anyway: only what was meant for us is passed on.
int wait_for(pid_t pid, const Signals& signals) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  while (true) {
    std::array<pollfd, 2> fds{pollfd{process.get(), POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    while (const auto signal = signals.take()) {
      if (signal->ssi_code <= 0) ::kill(pid, static_cast<int>(signal->ssi_signo));
    }
    if (fds[0].revents != 0) break;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void wait_for_interrupt(const Signals& signals) {
  pollfd fd{signals.fd(), POLLIN, 0};
  while (!signals.take()) ::poll(&fd, 1, -1);
}

/// The server is up, and we may: else a client would only see that nothing answers.
Result<void> try_out(const net::UpgradeTo& to) {
  HELIO_TRY(answer, net::PortForward::try_out(to));
  if (answer.status != kSwitching) return fail(problem_error(answer.status, answer.body));
  return {};
}

void print_address(const Context& context, std::uint16_t port, const RayAndPython& runs) {
  const std::string address = fmt::format("ray://127.0.0.1:{}", port);
  if (context.output() != Output::table) {
    print_document(context, json::Object{{"address", address}, {"ray_version", runs.ray}, {"python_version", runs.python}});
  } else {
    fmt::print("{}\n", address);
  }
  std::fflush(stdout);
  fmt::print(stderr, "# {}; open until Ctrl-C: RAY_ADDRESS={} RAY_AUTH_MODE=disabled python ...\n", describe(runs), address);
}

Result<int> connect(const Context& context, const ConnectFlags& flags) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(job, api->resolve_job(flags.job));
  HELIO_TRY(cluster, cluster_of(*api, job));
  if (!context.rest.empty() && !flags.any_version) HELIO_CHECK_OK(check_versions(cluster, context.rest[0]));
  HELIO_TRY(way, way_to(context, job));
  HELIO_CHECK_OK(try_out(way));
  // Until here a signal simply ends us.
  const Signals signals;
  Complaints complaints;
  HELIO_TRY(forward, net::PortForward::open(
                         flags.port, [&context, job] { return way_to(context, job); },
                         [&complaints](const Result<net::ClientResponse>& answer) { complaints.add(answer); }));
  if (context.rest.empty()) {
    print_address(context, forward->port(), cluster.runs);
    wait_for_interrupt(signals);
    return 0;
  }
  const auto pid = start(context.rest, environment_for(forward->port(), flags.any_version), signals.before());
  if (!pid) {
    fmt::print(stderr, "helio: {}\n", pid.error().message());
    return pid.error().code() == ErrorCode::not_found ? kNotFound : kNotExecutable;
  }
  return wait_for(*pid, signals);
}

}  // namespace

void add_connect_command(CLI::App& parent, Context& context) {
  const auto flags = std::make_shared<ConnectFlags>();
  CLI::App* connect_command = parent.add_subcommand(
      "connect", "run a command whose ray.init() reaches a cluster (Ray Client), or print a ray:// address and keep it open");
  connect_command->add_option("job", flags->job, "id, the beginning of one, a name, or last")->required();
  connect_command->add_option("--port", flags->port, "of 127.0.0.1, for the address (default: a free one)");
  connect_command->add_flag("--any-version", flags->any_version, "do not compare the Ray and Python of both sides, and tell Ray not to");
  connect_command->callback([&context, flags] { context.action = [&context, flags] { return connect(context, *flags); }; });
}

}  // namespace helio::cli
