#include "cli/daemon_process.h"

#include "base/json/json.h"
#include "cli/local_file.h"
#include "proc/process.h"
#include "proc/sys_info.h"

#include <limits>

namespace helio::cli {

Result<DaemonFile> read_daemon_file(const model::Home& home) {
  HELIO_TRY(text, read_file(home.daemon_file()));
  const auto value = json::parse(text);
  const json::Object* object = value ? value->if_object() : nullptr;
  if (object == nullptr) return fail(ErrorCode::internal, "{} is damaged", home.daemon_file());
  const auto text_of = [object](const char* name) {
    const json::Value* found = object->if_contains(name);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
  };
  const auto number_of = [object](const char* name) {
    const json::Value* found = object->if_contains(name);
    return found != nullptr && found->is_int64() ? found->get_int64() : 0;
  };
  return DaemonFile{number_of("pid"), static_cast<std::uint64_t>(number_of("start_ticks")), text_of("boot_id"), text_of("url"),
                    text_of("version")};
}

bool is_alive(const DaemonFile& file) {
  if (file.pid <= 0 || file.pid > std::numeric_limits<pid_t>::max() || file.url.empty() || file.boot_id != proc::boot_id()) return false;
  const auto stat = proc::process_stat(static_cast<pid_t>(file.pid));
  return stat && stat->start_ticks == file.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

Result<DaemonFile> running_daemon(const model::Home& home) {
  auto file = read_daemon_file(home);
  if (!file || !is_alive(*file)) return fail(ErrorCode::unavailable, "no daemon runs with {}; start it with `helio up`", home.root);
  return file;
}

}  // namespace helio::cli
