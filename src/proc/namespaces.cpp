#include "proc/namespaces.h"

#include "base/json/json.h"
#include "proc/child.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cerrno>

namespace helio::proc {
namespace {

int flags_of(Isolation isolation) {
  switch (isolation) {
    case Isolation::namespaces:
      return CLONE_NEWPID | CLONE_NEWNS;
    case Isolation::user_namespaces:
      return CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS;
    case Isolation::sessions:
      return 0;
  }
  return 0;
}

/// Whether a child gets as far as its own /proc.
Result<void> attempt(Isolation isolation) {
  detail::ChildPlan plan;
  plan.namespaces = flags_of(isolation);
  plan.only_probe = true;
  HELIO_TRY(child, detail::start_child(plan));
  detail::collect(child, true);
  return {};
}

IsolationSupport probe() {
  std::string why;
  if (geteuid() == 0) {
    const auto as_root = attempt(Isolation::namespaces);
    if (as_root) return {.best = Isolation::namespaces, .lost = ""};
    why = fmt::format("as root: {}; ", as_root.error().message());
  }
  const auto as_user = attempt(Isolation::user_namespaces);
  if (as_user) return {.best = Isolation::user_namespaces, .lost = ""};
  why += fmt::format("with a user namespace: {}", as_user.error().message());
  return {
      .best = Isolation::sessions,
      .lost = fmt::format("no PID namespaces here ({}), so nodes see each other's processes, a driver may attach to another node of its "
                          "cluster, and what a killed node leaves behind is found by its tag",
                          why)};
}

}  // namespace

std::string_view to_string(Isolation isolation) {
  switch (isolation) {
    case Isolation::namespaces:
      return "namespaces";
    case Isolation::user_namespaces:
      return "user namespaces";
    case Isolation::sessions:
      return "process groups";
  }
  return "?";
}

const IsolationSupport& probe_isolation() {
  static const IsolationSupport support = probe();
  return support;
}

Result<std::shared_ptr<Process>> spawn_isolated(rt::EventLoop& loop, const IsolatedOptions& options,
                                                std::function<void(ExitStatus)> on_exit) {
  if (options.isolation == Isolation::sessions && !options.binds.empty()) {
    return fail(ErrorCode::precondition_failed, "bind mounts need a mount namespace, which this host does not allow");
  }
  HELIO_TRY(plan, detail::make_plan(options.spawn));
  plan.namespaces = flags_of(options.isolation);
  plan.subreaper = options.isolation == Isolation::sessions;
  plan.lock_file = options.lock_file;
  plan.record_file = options.record_file;
  plan.boot_id = options.boot_id.empty() ? boot_id() : options.boot_id;
  if (plan.boot_id.size() > 64 || plan.boot_id.find_first_of("\"\\\n") != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "boot id {} is none", plan.boot_id);
  }
  plan.cgroup_procs = options.cgroup_procs;
  for (const BindMount& bind : options.binds) plan.binds.emplace_back(bind.source, bind.target);
  HELIO_TRY(child, detail::start_child(plan));
  return detail::watch_child(loop, std::move(child), std::move(on_exit));
}

Result<ProcessRecord> read_record(const std::string& path) {
  HELIO_TRY(text, read_file(path, 4096));
  const auto value = json::parse(text);
  const json::Object* object = value ? value->if_object() : nullptr;
  const json::Value* pid = object != nullptr ? object->if_contains("pid") : nullptr;
  const json::Value* ticks = object != nullptr ? object->if_contains("start_ticks") : nullptr;
  const json::Value* boot = object != nullptr ? object->if_contains("boot_id") : nullptr;
  if (pid == nullptr || ticks == nullptr || boot == nullptr || !pid->is_int64() || !ticks->is_int64() || !boot->is_string()) {
    return fail(ErrorCode::internal, "{} is not a process record", path);
  }
  return ProcessRecord{.pid = static_cast<pid_t>(pid->get_int64()),
                       .start_ticks = static_cast<std::uint64_t>(ticks->get_int64()),
                       .boot_id = std::string(boot->get_string())};
}

Result<bool> lock_is_free(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT) return true;
    return fail(system_error(errno, "open " + path));
  }
  if (flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return fail(system_error(errno, "lock " + path));
}

Result<void> become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return fail(system_error(errno, "become a child subreaper"));
  return {};
}

}  // namespace helio::proc
