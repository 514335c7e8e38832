#include "agent/client_server.h"

#include "base/log.h"
#include "proc/files.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace helio::agent {
namespace {

constexpr std::size_t kTail = 600;

/// The last words of a file, on one line.
std::string last_words(const std::string& path) {
  auto text = proc::read_file(path);
  if (!text) return {};
  std::string out = text->size() > kTail ? text->substr(text->size() - kTail) : std::move(*text);
  std::ranges::replace(out, '\n', ' ');
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

ClientServer::ClientServer(rt::EventLoop& loop, Executor& executor, ClientServerOptions options, Ended ended)
    : loop_(loop), executor_(executor), options_(std::move(options)), ended_(std::move(ended)) {}

void ClientServer::want(const std::string& id) {
  if (options_.argv.empty()) return;
  waiting_.insert(id);
  if (process_) return;
  const auto folder = options_.log_folder();
  if (!folder) return tell(std::nullopt, "Ray's client server cannot be started yet: " + folder.error().message());
  errors_ = *folder + "/ray_client_server.err";
  proc::SpawnOptions spawn;
  spawn.argv = options_.argv;
  spawn.env = options_.env;
  spawn.cwd = options_.cwd;
  spawn.stdout_file = *folder + "/ray_client_server.out";
  spawn.stderr_file = errors_;
  auto started =
      proc::spawn(loop_, spawn, [this](proc::ExitStatus status) { executor_.post([this, code = status.code] { ended(code); }); });
  if (!started) return tell(std::nullopt, "Ray's client server cannot be started: " + started.error().message());
  process_ = std::move(*started);
  log::info("Ray's client server runs as process {}", process_->pid());
}

void ClientServer::ended(int exit_code) {
  process_.reset();
  const std::string said = last_words(errors_);
  tell(exit_code, fmt::format("Ray's client server ended with {}{}{}", exit_code, said.empty() ? "" : ": ", said));
}

void ClientServer::tell(std::optional<int> exit_code, const std::string& why) {
  log::warn("{}", why);
  for (const std::string& id : std::exchange(waiting_, {})) ended_(id, exit_code, why);
}

}  // namespace helio::agent
