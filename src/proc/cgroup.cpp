#include "proc/cgroup.h"

#include "proc/files.h"
#include "proc/sys_info.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <map>
#include <memory>
#include <optional>

namespace helio::proc {
namespace {

constexpr std::int64_t kPeriodUs = 100'000;

struct CloseFolder {
  void operator()(DIR* dir) const { closedir(dir); }
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) out.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

/// Kernel interface files take one write and must not be replaced.
Result<void> put(const std::string& path, const std::string& value) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail(system_error(errno, "open " + path));
  if (write(fd.get(), value.data(), value.size()) < 0) return fail(system_error(errno, fmt::format("write {} to {}", value, path)));
  return {};
}

Result<std::int64_t> get_number(const std::string& path) {
  HELIO_TRY(text, read_file(path, 4096));
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    return fail(ErrorCode::internal, "{} holds no number", path);
  }
  return value;
}

/// "oom_kill 3" among other lines.
Result<std::int64_t> get_keyed(const std::string& path, std::string_view key) {
  HELIO_TRY(text, read_file(path, 65536));
  for (const std::string_view line : split(text, '\n')) {
    const auto parts = split(line, ' ');
    if (parts.size() != 2 || parts[0] != key) continue;
    std::int64_t value = 0;
    std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), value);
    return value;
  }
  return fail(ErrorCode::not_found, "{} has no {}", path, key);
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

Result<void> make_group(const std::string& folder) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return fail(system_error(errno, "make " + folder));
  return {};
}

std::vector<std::string> subgroups(const std::string& folder) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, CloseFolder> dir(opendir(folder.c_str()));
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  }
  std::ranges::sort(out);
  return out;
}

/// Groups that programs inside made (Ray's resource isolation) go first.
Result<void> remove_group(const std::string& folder) {
  for (const std::string& inner : subgroups(folder)) HELIO_CHECK_OK(remove_group(folder + "/" + inner));
  if (rmdir(folder.c_str()) == 0 || errno == ENOENT) return {};
  if (errno == EBUSY) return fail(ErrorCode::unavailable, "{} still holds processes", folder);
  return fail(system_error(errno, "remove " + folder));
}

Result<void> kill_group(const std::string& folder) {
  if (!exists(folder)) return {};
  if (exists(folder + "/cgroup.kill")) return put(folder + "/cgroup.kill", "1");  // Linux 5.14, whole subtree
  for (const std::string& inner : subgroups(folder)) HELIO_CHECK_OK(kill_group(folder + "/" + inner));
  for (int round = 0; round < 8; ++round) {  // what forks while we read is met in the next round
    const auto text = read_file(folder + "/cgroup.procs");
    if (!text) return text.error().code() == ErrorCode::not_found ? Result<void>() : fail(text.error());
    bool any = false;
    for (const std::string_view line : split(*text, '\n')) {
      pid_t pid = 0;
      if (std::from_chars(line.data(), line.data() + line.size(), pid).ec != std::errc() || pid <= 0) continue;
      const auto stat = process_stat(pid);
      if (!stat || stat->state == 'Z') continue;
      any = signal_process(pid, stat->start_ticks, SIGKILL).has_value() || any;
    }
    if (!any) break;
  }
  return {};
}

bool good_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name[0] != '.' && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

// --- none -------------------------------------------------------------------------------------------------------------------------

class NoDriver final : public CgroupDriver {
 public:
  explicit NoDriver(std::string why) : why_(std::move(why)) {}
  [[nodiscard]] CgroupKind kind() const override { return CgroupKind::none; }
  [[nodiscard]] std::string about() const override { return fmt::format("watching ({})", why_); }
  Result<void> create(const std::string&, const CgroupLimits&) override { return {}; }
  [[nodiscard]] std::string folder(const std::string&) const override { return ""; }
  [[nodiscard]] std::vector<std::string> procs_files(const std::string&) const override { return {}; }
  Result<void> kill(const std::string&) override { return {}; }
  Result<void> remove(const std::string&) override { return {}; }
  [[nodiscard]] std::vector<std::string> list() const override { return {}; }

 private:
  std::string why_;
};

// --- v2 ---------------------------------------------------------------------------------------------------------------------------

bool has_word(const std::string& path, std::string_view word) {
  const auto text = read_file(path, 4096);
  if (!text) return false;
  for (const std::string_view line : split(*text, '\n')) {
    const auto words = split(line, ' ');
    if (std::ranges::find(words, word) != words.end()) return true;
  }
  return false;
}

/// Lets children of `folder` have their own limits.
Result<void> delegate(const std::string& folder, bool pids) {
  for (const std::string_view controller : {"memory", "cpu", "pids"}) {
    if (controller == "pids" && !pids) continue;
    const std::string file = folder + "/cgroup.subtree_control";
    if (!has_word(file, controller)) HELIO_CHECK_OK(put(file, fmt::format("+{}", controller)));
  }
  return {};
}

class V2Driver final : public CgroupDriver {
 public:
  V2Driver(std::string parent, bool pids) : parent_(std::move(parent)), pids_(pids) {}
  ~V2Driver() override { rmdir(parent_.c_str()); }  // only when no group is left
  [[nodiscard]] CgroupKind kind() const override { return CgroupKind::v2; }
  [[nodiscard]] std::string about() const override { return "cgroup v2"; }
  Result<void> create(const std::string& name, const CgroupLimits& limits) override {
    if (!good_name(name)) return fail(ErrorCode::invalid_argument, "bad cgroup name {}", name);
    const std::string group = folder(name);
    HELIO_CHECK_OK(make_group(parent_));
    HELIO_CHECK_OK(delegate(parent_, pids_));
    HELIO_CHECK_OK(make_group(group));
    HELIO_CHECK_OK(put(group + "/memory.max", limits.memory.n > 0 ? std::to_string(limits.memory.n) : "max"));
    if (exists(group + "/memory.swap.max")) HELIO_CHECK_OK(put(group + "/memory.swap.max", limits.memory.n > 0 ? "0" : "max"));
    const std::string quota = limits.cpu_quota.n > 0 ? std::to_string(limits.cpu_quota.n * kPeriodUs / 1000) : "max";
    HELIO_CHECK_OK(put(group + "/cpu.max", fmt::format("{} {}", quota, kPeriodUs)));
    const std::int64_t weight = limits.cpu_weight.n > 0 ? std::clamp<std::int64_t>(limits.cpu_weight.n / 10, 1, 10'000) : 100;
    HELIO_CHECK_OK(put(group + "/cpu.weight", std::to_string(weight)));
    if (pids_) HELIO_CHECK_OK(put(group + "/pids.max", limits.pids > 0 ? std::to_string(limits.pids) : "max"));
    return {};
  }
  [[nodiscard]] std::string folder(const std::string& name) const override { return parent_ + "/" + name; }
  [[nodiscard]] std::vector<std::string> procs_files(const std::string& name) const override { return {folder(name) + "/cgroup.procs"}; }
  Result<void> kill(const std::string& name) override { return kill_group(folder(name)); }
  Result<void> remove(const std::string& name) override { return remove_group(folder(name)); }
  [[nodiscard]] std::vector<std::string> list() const override { return subgroups(parent_); }

 private:
  std::string parent_;
  bool pids_;
};

/// A v2 group with members cannot share out controllers. When this process is the only member (a systemd unit with Delegate=yes), it
/// moves into a leaf of its own, as systemd's documentation asks of such services.
Result<void> step_aside(const CgroupMount& mount) {
  if (mount.own == mount.mount_point) return {};  // the root is exempt
  HELIO_TRY(members, read_file(mount.own + "/cgroup.procs", 65536));
  const auto pids = split(members, '\n');
  if (pids.empty()) return {};
  if (pids.size() > 1 || pids[0] != std::to_string(getpid())) {
    return fail(ErrorCode::permission_denied, "other processes share {}", mount.own);
  }
  const std::string leaf = mount.own + "/daemon";
  HELIO_CHECK_OK(make_group(leaf));
  return put(leaf + "/cgroup.procs", "0");
}

Result<std::unique_ptr<CgroupDriver>> make_v2(const CgroupMount& mount, const std::string& parent) {
  // A daemon that stepped aside before it was restarted in place finds itself in its leaf.
  CgroupMount base = mount;
  if (base.own.ends_with("/daemon") && base.own.size() > base.mount_point.size() + 7) base.own.resize(base.own.size() - 7);
  const std::string controllers = base.own + "/cgroup.controllers";
  for (const std::string_view needed : {"memory", "cpu"}) {
    if (!has_word(controllers, needed)) return fail(ErrorCode::unimplemented, "cgroup v2 has no {} controller for {}", needed, base.own);
  }
  const bool pids = has_word(controllers, "pids");
  if (!has_word(base.own + "/cgroup.subtree_control", "memory")) HELIO_CHECK_OK(step_aside(base));
  HELIO_CHECK_OK(delegate(base.own, pids));
  const std::string folder = base.own + "/" + parent;
  HELIO_CHECK_OK(make_group(folder));
  HELIO_CHECK_OK(delegate(folder, pids));
  return std::make_unique<V2Driver>(folder, pids);
}

// --- v1 ---------------------------------------------------------------------------------------------------------------------------

/// One hierarchy per controller. Memory is what it is for; cpu and pids are used where they can be.
class V1Driver final : public CgroupDriver {
 public:
  /// Controller to parent folder; "memory" is always there.
  explicit V1Driver(std::map<std::string, std::string> parents) : parents_(std::move(parents)) {}
  ~V1Driver() override {
    for (const std::string& parent : hierarchies()) rmdir(parent.c_str());  // only when no group is left
  }
  [[nodiscard]] CgroupKind kind() const override { return CgroupKind::v1; }
  [[nodiscard]] std::string about() const override {
    std::string names;
    for (const auto& [controller, parent] : parents_) names += (names.empty() ? "" : ", ") + controller;
    return fmt::format("cgroup v1 ({})", names);
  }
  Result<void> create(const std::string& name, const CgroupLimits& limits) override {
    if (!good_name(name)) return fail(ErrorCode::invalid_argument, "bad cgroup name {}", name);
    for (const auto& [controller, parent] : parents_) {
      HELIO_CHECK_OK(make_group(parent));
      HELIO_CHECK_OK(make_group(parent + "/" + name));
    }
    HELIO_CHECK_OK(limit_memory(folder(name), limits.memory));
    if (const auto cpu = parents_.find("cpu"); cpu != parents_.end()) {
      const std::string group = cpu->second + "/" + name;
      const std::int64_t quota = limits.cpu_quota.n > 0 ? limits.cpu_quota.n * kPeriodUs / 1000 : -1;
      HELIO_CHECK_OK(put(group + "/cpu.cfs_period_us", std::to_string(kPeriodUs)));
      HELIO_CHECK_OK(put(group + "/cpu.cfs_quota_us", std::to_string(quota)));
      const std::int64_t shares = limits.cpu_weight.n > 0 ? std::clamp<std::int64_t>(limits.cpu_weight.n * 1024 / 1000, 2, 262'144) : 1024;
      HELIO_CHECK_OK(put(group + "/cpu.shares", std::to_string(shares)));
    }
    if (const auto pids = parents_.find("pids"); pids != parents_.end()) {
      HELIO_CHECK_OK(put(pids->second + "/" + name + "/pids.max", limits.pids > 0 ? std::to_string(limits.pids) : "max"));
    }
    return {};
  }
  [[nodiscard]] std::string folder(const std::string& name) const override { return parents_.at("memory") + "/" + name; }
  [[nodiscard]] std::vector<std::string> procs_files(const std::string& name) const override {
    std::vector<std::string> out;
    for (const std::string& parent : hierarchies()) out.push_back(parent + "/" + name + "/cgroup.procs");
    return out;
  }
  Result<void> kill(const std::string& name) override { return kill_group(folder(name)); }
  Result<void> remove(const std::string& name) override {
    Result<void> first;
    for (const std::string& parent : hierarchies()) {
      auto removed = remove_group(parent + "/" + name);
      if (!removed && first) first = std::move(removed);
    }
    return first;
  }
  [[nodiscard]] std::vector<std::string> list() const override {
    std::vector<std::string> out;
    for (const std::string& parent : hierarchies()) {
      for (std::string& name : subgroups(parent)) {
        if (std::ranges::find(out, name) == out.end()) out.push_back(std::move(name));
      }
    }
    return out;
  }

 private:
  /// "cpu" and "cpuacct" may be one mount.
  [[nodiscard]] std::vector<std::string> hierarchies() const {
    std::vector<std::string> out;
    for (const auto& [controller, parent] : parents_) {
      if (std::ranges::find(out, parent) == out.end()) out.push_back(parent);
    }
    return out;
  }
  /// The limit with swap may never be below the one without, so the order depends on the direction.
  static Result<void> limit_memory(const std::string& group, Bytes memory) {
    const std::string value = memory.n > 0 ? std::to_string(memory.n) : "-1";
    const std::string plain = group + "/memory.limit_in_bytes";
    const std::string with_swap = group + "/memory.memsw.limit_in_bytes";
    if (!exists(with_swap)) return put(plain, value);
    const bool raised = put(with_swap, value).has_value();
    HELIO_CHECK_OK(put(plain, value));
    return raised ? Result<void>() : put(with_swap, value);
  }

  std::map<std::string, std::string> parents_;
};

Result<std::unique_ptr<CgroupDriver>> make_v1(const std::vector<CgroupMount>& mounts, const std::string& parent) {
  std::map<std::string, std::string> parents;
  std::optional<Error> memory_error;
  for (const CgroupMount& mount : mounts) {
    if (mount.v2) continue;
    for (const std::string& controller : mount.controllers) {
      if (controller != "memory" && controller != "cpu" && controller != "pids") continue;
      std::string folder = mount.own + "/" + parent;
      auto made = make_group(folder);
      if (made && access(folder.c_str(), W_OK) != 0) made = fail(system_error(errno, "write to " + folder));
      if (made) {
        parents.emplace(controller, std::move(folder));
      } else if (controller == "memory") {
        memory_error = made.error();
      }
    }
  }
  if (parents.contains("memory")) return std::make_unique<V1Driver>(std::move(parents));
  if (memory_error) return fail(std::move(*memory_error));
  return fail(ErrorCode::unimplemented, "no cgroup v1 memory controller is mounted");
}

/// mountinfo writes blanks and the like as \040.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int value = 0;
    if (text[i] == '\\' && i + 3 < text.size() && std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8).ec == std::errc()) {
      out += static_cast<char>(value);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo, std::string_view self_cgroup) {
  // "4:memory:/path" or "0::/path" (v2), by its list of controllers
  std::map<std::string, std::string, std::less<>> own_paths;
  for (const std::string_view line : split(self_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second != std::string_view::npos) own_paths.emplace(line.substr(first + 1, second - first - 1), line.substr(second + 1));
  }
  std::vector<CgroupMount> out;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');  // id parent major:minor root mount_point options…
    const auto after = split(line.substr(dash + 3), ' ');  // type source options
    if (before.size() < 6 || after.size() < 3 || (after[0] != "cgroup" && after[0] != "cgroup2")) continue;
    CgroupMount mount;
    mount.v2 = after[0] == "cgroup2";
    mount.mount_point = unescape(before[4]);
    std::string_view own = "/";
    for (const auto& [names, path] : own_paths) {
      const auto controllers = split(names, ',');
      bool ours = mount.v2 && names.empty();
      if (!mount.v2 && !names.empty()) {
        const auto options = split(after[2], ',');
        ours = std::ranges::all_of(controllers, [&](std::string_view c) { return std::ranges::find(options, c) != options.end(); });
      }
      if (!ours) continue;
      own = path;
      for (const std::string_view c : controllers) mount.controllers.emplace_back(c);
    }
    if (!mount.v2 && mount.controllers.empty()) continue;
    // A container sees a part of the hierarchy: what is mounted is `root`, and paths start above it.
    std::string root = unescape(before[3]);
    if (root != "/" && own.starts_with(root)) own.remove_prefix(root.size());
    mount.own = mount.mount_point + (own == "/" ? "" : std::string(own));
    out.push_back(std::move(mount));
  }
  return out;
}

std::unique_ptr<CgroupDriver> make_no_cgroup_driver(const std::string& why) { return std::make_unique<NoDriver>(why); }

std::unique_ptr<CgroupDriver> make_cgroup_driver(const std::string& parent) {
  if (!good_name(parent)) return make_no_cgroup_driver("bad group name " + parent);
  const auto mountinfo = read_file("/proc/self/mountinfo");
  const auto own = read_file("/proc/self/cgroup");
  if (!mountinfo || !own) return make_no_cgroup_driver("no cgroups here");
  const std::vector<CgroupMount> mounts = parse_cgroup_mounts(*mountinfo, *own);
  std::string why;
  for (const CgroupMount& mount : mounts) {
    if (!mount.v2) continue;
    auto v2 = make_v2(mount, parent);
    if (v2) return std::move(*v2);
    why = v2.error().message() + "; ";
  }
  auto v1 = make_v1(mounts, parent);
  if (v1) return std::move(*v1);
  return make_no_cgroup_driver(why + v1.error().message());
}

Result<std::int64_t> cgroup_oom_kills(const std::string& folder) {
  if (exists(folder + "/memory.events")) return get_keyed(folder + "/memory.events", "oom_kill");
  return get_keyed(folder + "/memory.oom_control", "oom_kill");
}

Result<void> kill_cgroup(const std::string& folder) { return kill_group(folder); }
Result<void> remove_cgroup(const std::string& folder) { return remove_group(folder); }

Result<Bytes> cgroup_memory_used(const std::string& folder) {
  const std::string v2 = folder + "/memory.current";
  HELIO_TRY(value, get_number(exists(v2) ? v2 : folder + "/memory.usage_in_bytes"));
  return Bytes{value};
}

}  // namespace helio::proc
