// Stands in for helio-agent: obeys the same command line and leaves the same files, and does what TEST_MODE in its assignment says.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string text_of(const std::string& document, const std::string& key) {
  const std::string start = "\"" + key + "\":\"";
  const std::size_t at = document.find(start);
  if (at == std::string::npos) return "";
  return document.substr(at + start.size(), document.find('"', at + start.size()) - at - start.size());
}

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// One write, so that lines of several processes do not mix.
void append(const std::string& path, const std::string& line) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, line.data(), line.size()) < 0) perror(path.c_str());
  if (fd >= 0) close(fd);
}

void write_final(const std::string& folder, const std::string& node, bool complete) {
  const std::string temporary = folder + "/final.tmp";
  std::ofstream(temporary) << R"({"node":")" << node << R"(","sequence":7,"logs_complete":)" << (complete ? "true" : "false") << "}";
  rename(temporary.c_str(), (folder + "/final.json").c_str());
}

/// A session of its own, out of reach for signals to ours.
void leave_grandchild() {
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (;;) pause();
  }
}

void eat_memory() {
  constexpr std::size_t kPiece = 1U << 20U;
  for (;;) {
    void* piece = mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (piece == MAP_FAILED) pause();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string folder = argv[2];
  const std::string home = folder + "/../..";
  const std::string assignment = read(folder + "/assignment.json");
  const std::string node = text_of(assignment, "node");
  const std::string mode = text_of(assignment, "TEST_MODE");
  if (argc > 3) {
    if (mode == "slow_harvest") pause();
    append(home + "/harvests", node + "\n");
    write_final(folder, node, true);
    return 0;
  }
  // Blocked from the start, so that one sent at once is not lost on a first process without a handler.
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  append(text_of(assignment, "head_temp_dir") + "/seen", node + "\n");
  leave_grandchild();
  append(home + "/starts", node + "\n");
  if (mode == "quit") {
    write_final(folder, node, true);
    return 0;
  }
  if (mode == "fail") return 3;
  if (mode == "eat") eat_memory();
  int number = 0;
  do {
    sigwait(&term, &number);
  } while (mode == "stubborn");
  write_final(folder, node, true);
  return 0;
}
