// helio-agent --node-dir DIR [--harvest]: the first process of one node. …/leash LINE: the driver of a submitter.

#include "agent/agent.h"
#include "agent/leash.h"
#include "base/log.h"
#include "proc/namespaces.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>  // NOLINT: sigaction
#include <sys/eventfd.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

int terminate_event = -1;

void on_terminate(int) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(terminate_event, &one, sizeof one);
}

constexpr int kUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && helio::agent::is_on_leash(argv[0])) return helio::agent::run_on_leash(argv[0], argv[1]);
  std::string node_dir;
  bool harvest = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--node-dir" && i + 1 < argc) {
      node_dir = argv[++i];
    } else if (word == "--harvest") {
      harvest = true;
    } else {
      std::fputs("usage: helio-agent --node-dir DIR [--harvest]\n", stderr);
      return kUsage;
    }
  }
  if (node_dir.empty()) {
    std::fputs("helio-agent: --node-dir is missing\n", stderr);
    return kUsage;
  }
  helio::log::set_program("helio-agent");
  ::mallopt(M_ARENA_MAX, 2);  // few threads, little memory

  auto files = helio::agent::read_node_files(node_dir);
  if (!files) {
    helio::log::error("{}", files.error().text());
    return EXIT_FAILURE;
  }
  if (harvest) return helio::agent::harvest(std::move(*files));

  // Before any thread, so that a first process of a namespace never ignores SIGTERM.
  terminate_event = ::eventfd(0, EFD_CLOEXEC);
  struct sigaction action{};
  action.sa_handler = on_terminate;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);

  const bool first = ::getpid() == 1;
  if (!first) {
    if (auto made = helio::proc::become_subreaper(); !made) helio::log::warn("{}", made.error().text());
  }
  helio::agent::Agent agent(std::move(*files), first);
  std::thread([&agent] {
    std::uint64_t count = 0;
    while (::read(terminate_event, &count, sizeof count) == sizeof count) agent.terminate();
  }).detach();
  const int code = agent.run();
  // The kernel ends what is left of the node, this process's threads included; none of them holds anything that needs an orderly end.
  std::_Exit(code);
}
