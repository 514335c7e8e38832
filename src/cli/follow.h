#pragma once
// Follows a job to its end: stages on stderr, the entrypoint's output on stdout, over restarts of the daemon.

#include "cli/api_client.h"
#include "cli/context.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace helio::cli {

/// Copies a log stream of a job to `write` until the job has ended and all is read. Each byte once: after a broken connection it goes on
/// at the offset that it had reached, however long the daemon is away. Errors: those of the request; `write`'s, when it fails.
struct LogFollow {
  std::vector<std::pair<std::string, std::string>> selection;  ///< query pairs but offset and follow
  std::int64_t offset = 0;
};
Result<void> follow_log(const Context& context, const std::string& job, const LogFollow& follow, const std::atomic<bool>& cancelled,
                        const std::function<Result<void>(std::string_view)>& write);

/// Waits for the job's end over restarts of the daemon; `on_change` sees each new state of it.
Result<model::Job> watch_job(const Context& context, const std::string& job, const std::atomic<bool>& cancelled,
                             const std::function<void(const model::Job&, const std::vector<model::Attempt>&)>& on_change);

struct RunView {
  bool stages = true;  ///< on stderr
  bool output = true;  ///< on stdout
};
/// `helio run` and `helio submit --follow` after the submit. Returns the exit code; handles Ctrl-C (docs/en/cli.md).
Result<int> follow_to_end(const Context& context, const std::string& job, RunView view);

}  // namespace helio::cli
