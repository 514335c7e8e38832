// doctor: can this machine run jobs, and if not, what is missing.

#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/daemon.h"
#include "cli/local_file.h"
#include "cli/table.h"
#include "model/pool.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace helio::cli {
namespace {

namespace fs = std::filesystem;

enum class Health { ok, warn, bad };

struct Finding {
  std::string what;
  Health health = Health::ok;
  std::string detail;
  std::string advice;
};

constexpr Bytes kLeastDisk = 2_GiB;
constexpr Bytes kLeastShm = 256_MiB;
constexpr std::int64_t kPortsEnd = 32768;

Bytes free_bytes(const std::string& path) {
  struct statvfs info{};
  if (::statvfs(path.c_str(), &info) != 0) return {0};
  return {static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize)};
}

Finding check_home(const Context& context) {
  fs::path at = context.home.root;
  std::error_code error;
  while (!fs::exists(at, error) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  if (::access(at.c_str(), W_OK) != 0) {
    return {"data folder", Health::bad, context.home.root + " cannot be written", "set HELIOSTAT_HOME to a folder of yours"};
  }
  const Bytes free = free_bytes(at.string());
  const std::string detail = fmt::format("{}, {} free", context.home.root, format_bytes(free));
  if (free < kLeastDisk)
    return {"data folder", Health::warn, detail, fmt::format("logs and sessions want {} at least", format_bytes(kLeastDisk))};
  return {"data folder", Health::ok, detail, {}};
}

Finding check_shm() {
  const Bytes free = free_bytes("/dev/shm");
  const std::string detail = format_bytes(free) + " free in /dev/shm";
  if (free >= kLeastShm) return {"shared memory", Health::ok, detail, {}};
  return {"shared memory", Health::bad, detail, "Ray's object stores live there: enlarge it (mount -o remount,size=2G /dev/shm)"};
}

/// Whether a child may enter new namespaces: what a node needs. 0, or the errno.
int try_namespaces(int flags) {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(::unshare(flags) == 0 ? 0 : errno);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

Finding check_namespaces() {
  const bool root = ::geteuid() == 0;
  const int flags = CLONE_NEWPID | CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER);
  const int error = try_namespaces(flags);
  if (error == 0) return {"namespaces", Health::ok, root ? "process and mount namespaces" : "user, process and mount namespaces", {}};
  return {"namespaces", Health::warn, system_error(error, "unshare").message(),
          "nodes fall back to process groups (docs/limits.md); allow unprivileged user namespaces to avoid it"};
}

Finding check_cgroup() {
  std::error_code error;
  const bool v2 = fs::exists("/sys/fs/cgroup/cgroup.controllers", error);
  const std::string folder = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  if (!v2 && !fs::exists(folder, error)) return {"cgroups", Health::warn, "none", "memory limits are kept by watching"};
  const auto controllers = v2 ? read_file("/sys/fs/cgroup/cgroup.controllers") : Result<std::string>("memory");
  const bool memory = controllers && controllers->contains("memory");
  const bool writable = ::access(folder.c_str(), W_OK) == 0;
  const std::string detail =
      fmt::format("cgroup {}, {}{}", v2 ? "v2" : "v1", writable ? "writable" : "not writable", memory ? "" : ", no memory controller");
  if (writable && memory) return {"cgroups", Health::ok, detail, {}};
  return {"cgroups", Health::warn, detail, "memory limits are kept by watching"};
}

Finding check_ports() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  std::int64_t first = 0;
  range >> first;
  const std::string detail = fmt::format("outgoing connections use {} and up", first);
  if (first >= kPortsEnd) return {"ports", Health::ok, detail, {}};
  return {"ports", Health::warn, detail,
          fmt::format("they may collide with Ray's below {0}: sysctl net.ipv4.ip_local_port_range='{0} 60999'", kPortsEnd)};
}

Finding check_program() {
  const auto program = find_daemon_program();
  if (!program) return {"programs", Health::bad, program.error().message(), "build it (./dev build) or put it into PATH"};
  const fs::path agent = fs::path(*program).parent_path() / "helio-agent";
  if (::access(agent.c_str(), X_OK) != 0) return {"programs", Health::bad, agent.string() + " is missing", "it belongs beside heliostatd"};
  return {"programs", Health::ok, *program, {}};
}

void check_daemon(const Context& context, std::vector<Finding>& out) {
  auto api = ApiClient::connect(context);
  if (!api || !daemon_answers((*api)->url(), 2s, context.roots)) {
    out.push_back({"daemon", Health::warn, "not up", "helio up"});
    return;
  }
  const auto version = (*api)->get("/v1/version", 2s);
  const json::Value* number = version && version->is_object() ? version->get_object().if_contains("version") : nullptr;
  const std::string shown = number != nullptr && number->is_string() ? std::string(number->get_string()) : "?";
  out.push_back({"daemon", shown == HELIO_VERSION ? Health::ok : Health::warn, fmt::format("{} at {}", shown, (*api)->url()),
                 shown == HELIO_VERSION ? "" : fmt::format("this program is {}; restart the daemon: helio down; helio up", HELIO_VERSION)});
  const auto items = (*api)->list("/v1/images");
  if (!items) {
    out.push_back({"images", Health::bad, items.error().text(), {}});
    return;
  }
  const auto images = decode_items<model::Image>(*items);
  if (!images || images->empty()) {
    out.push_back({"images", Health::bad, "none", "helio image add default --python PREFIX (a Python with ray[default])"});
    return;
  }
  for (const model::Image& image : *images) {
    const bool there =
        ::access((image.prefix + "/bin/python").c_str(), X_OK) == 0 && ::access((image.prefix + "/bin/ray").c_str(), X_OK) == 0;
    out.push_back({"image " + image.name.value, there ? Health::ok : Health::bad,
                   fmt::format("Ray {}, Python {}, {}", image.ray_version, image.python_version, image.prefix),
                   there ? "" : "bin/python or bin/ray is missing there: install again, or helio image rm " + image.name.value});
  }
}

std::string_view health_name(Health health) { return health == Health::ok ? "ok" : health == Health::warn ? "warn" : "bad"; }

Result<int> doctor(const Context& context) {
  std::vector<Finding> findings{check_program(), check_home(context), check_shm(), check_namespaces(), check_cgroup(), check_ports()};
  check_daemon(context, findings);
  bool bad = false;
  json::Array document;
  Table table({"CHECK", "", "FOUND", "WHAT TO DO"});
  for (const Finding& finding : findings) {
    bad = bad || finding.health == Health::bad;
    table.row({finding.what, std::string(health_name(finding.health)), finding.detail, finding.advice});
    document.push_back(json::Object{
        {"check", finding.what}, {"health", health_name(finding.health)}, {"found", finding.detail}, {"advice", finding.advice}});
  }
  if (context.output() == Output::table)
    table.print();
  else
    print_document(context, document);
  return bad ? cli_exit_code(ErrorCode::precondition_failed) : 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("doctor", "check this machine, the daemon and the images; exits 70 when something must be fixed");
  command->callback([&context] { context.action = [&context] { return doctor(context); }; });
}

}  // namespace helio::cli
