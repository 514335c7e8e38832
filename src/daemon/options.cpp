#include "daemon/options.h"

#include "base/json/yaml.h"
#include "proc/files.h"

#include <arpa/inet.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>

namespace helio::daemon {
namespace {

namespace fs = std::filesystem;

std::string default_home() {
  if (const char* home = std::getenv("HELIOSTAT_HOME"); home != nullptr && *home != '\0') return home;  // NOLINT(concurrency-mt-unsafe)
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return std::string(home) + "/.heliostat";  // NOLINT
  return {};
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, Options& options) {
  CLI::App app{"heliostatd: the heliostat daemon", "heliostatd"};
  std::string home = default_home();
  std::string listen;
  app.add_option("--home", home, "data folder (default: $HELIOSTAT_HOME, then ~/.heliostat)");
  app.add_option("--listen", listen, "ADDRESS:PORT (default: config.yaml, then the port of the last start, then any free one)");
  app.add_option("--agent", options.agent, "helio-agent program (default: beside heliostatd)");
  app.add_flag("--foreground", options.foreground, "stop when the terminal goes away");
  app.add_flag("--print-openapi", options.print_openapi, "print the OpenAPI document and exit");
  app.set_version_flag("--version", std::string("heliostatd ") + HELIO_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (home.empty() && !options.print_openapi) {
    fmt::print(stderr, "heliostatd: neither --home nor $HELIOSTAT_HOME nor $HOME says where the data lies\n");
    return 2;
  }
  std::error_code error;
  options.home.root = home.empty() ? std::string() : fs::absolute(home, error).lexically_normal().string();
  if (error) {
    fmt::print(stderr, "heliostatd: --home {}: {}\n", home, error.message());
    return 2;
  }
  while (options.home.root.size() > 1 && options.home.root.back() == '/') options.home.root.pop_back();
  if (!listen.empty()) options.listen = listen;
  return std::nullopt;
}

Result<void> apply_listen(const std::string& listen, model::ServerSettings& server) {
  const std::size_t colon = listen.rfind(':');
  std::string address = colon == std::string::npos ? std::string() : listen.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  std::int32_t port = -1;
  if (colon != std::string::npos) {
    const char* const begin = listen.data() + colon + 1;
    const char* const end = listen.data() + listen.size();
    if (const auto [stop, error] = std::from_chars(begin, end, port); error != std::errc{} || stop != end) port = -1;
  }
  if (address.empty() || port < 0 || port > 65535) {
    return fail(ErrorCode::invalid_argument, "--listen {}: expected ADDRESS:PORT, such as 127.0.0.1:8321", listen);
  }
  server.address = std::move(address);
  server.port = port;
  return {};
}

bool is_loopback(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  return address == "::1";
}

Result<model::Settings> load_settings(const model::Home& home) {
  auto text = proc::read_file(home.config(), 1U << 20U);
  if (!text) {
    if (text.error().code() == ErrorCode::not_found) return model::Settings{};
    return fail(std::move(text.error()).during("read " + home.config()));
  }
  auto value = json::from_yaml(*text);
  if (!value) return fail(std::move(value.error()).during(home.config()));
  if (value->is_null()) return model::Settings{};
  auto settings = json::decode<model::Settings>(*value);
  if (!settings) return fail(std::move(settings.error()).during(home.config()));
  if (auto right = check_settings(*settings); !right) return fail(std::move(right.error()).during(home.config()));
  return std::move(*settings);
}

namespace {

constexpr std::size_t kSessionRootMax = 12;  ///< Ray's socket names take the rest of the 107 bytes that a path of a socket may have
constexpr Bytes kLeastDisk = 64_MiB;

std::unexpected<Error> wrong(std::string path, std::string message) {
  return fail(Error(ErrorCode::invalid_argument, std::move(message)).at(std::move(path)));
}

Result<void> check_pool(const model::PoolSettings& pool) {
  if (!(pool.cpu_overcommit >= 0.1 && pool.cpu_overcommit <= 100)) return wrong("$.pool.cpu_overcommit", "expected 0.1 to 100");
  if (!(pool.memory_share > 0 && pool.memory_share <= 1)) return wrong("$.pool.memory_share", "expected more than 0, at most 1");
  if (pool.virtual_gpus < 0 || pool.virtual_gpus > 1024) return wrong("$.pool.virtual_gpus", "expected 0 to 1024");
  if (pool.head_flavor.empty()) return wrong("$.pool.head_flavor", "expected the name of a flavor");
  if (pool.worker_flavor.empty()) return wrong("$.pool.worker_flavor", "expected the name of a flavor");
  for (std::size_t i = 0; i < pool.mounts.size(); ++i) {
    if (!pool.mounts[i].starts_with('/')) return wrong(fmt::format("$.pool.mounts[{}]", i), "expected an absolute path");
  }
  if (pool.node_disk.n != 0 && pool.node_disk < kLeastDisk) {
    return wrong("$.pool.node_disk", fmt::format("expected 0 (10 GiB) or at least {}", format_bytes(kLeastDisk)));
  }
  if (!pool.session_root) return {};
  const std::string& root = *pool.session_root;
  if (!root.starts_with('/') || root.size() > kSessionRootMax) {
    return wrong("$.pool.session_root", fmt::format("expected an absolute path of at most {} bytes, got {}", kSessionRootMax, root.size()));
  }
  std::error_code error;
  if (fs::exists(root, error) && !fs::is_directory(root, error)) return wrong("$.pool.session_root", root + " is no folder");
  return {};
}

Result<void> check_jobs_api(const model::JobsApiSettings& jobs_api) {
  if (jobs_api.workers < 0 || jobs_api.workers > 10'000) return wrong("$.jobs_api.workers", "expected 0 to 10000");
  if (jobs_api.image.empty()) return wrong("$.jobs_api.image", "expected the name of an image");
  if (jobs_api.worker_flavor && jobs_api.worker_flavor->empty()) return wrong("$.jobs_api.worker_flavor", "expected the name of a flavor");
  if (jobs_api.head_flavor && jobs_api.head_flavor->empty()) return wrong("$.jobs_api.head_flavor", "expected the name of a flavor");
  return {};
}

}  // namespace

Result<void> check_settings(const model::Settings& settings) {
  HELIO_CHECK_OK(check_pool(settings.pool));
  HELIO_CHECK_OK(check_jobs_api(settings.jobs_api));
  const model::ServerSettings& server = settings.server;
  in6_addr address{};
  const bool v4 = ::inet_pton(AF_INET, server.address.c_str(), &address) == 1;
  if (!v4 && ::inet_pton(AF_INET6, server.address.c_str(), &address) != 1) {
    return wrong("$.server.address", fmt::format("'{}' is no IP address", server.address));
  }
  if (server.tls) {
    for (const auto& [field, file] : {std::pair("certificate", &server.tls->certificate), std::pair("key", &server.tls->key)}) {
      const std::string path = fmt::format("$.server.tls.{}", field);
      if (!file->starts_with('/')) return wrong(path, "expected the absolute path of a PEM file");
      if (::access(file->c_str(), R_OK) != 0) return wrong(path, *file + " cannot be read");
    }
  }
  if (server.port < 0 || server.port > 65535) return wrong("$.server.port", "expected 0 (any free one) to 65535");
  if (server.package_limit.n <= 0) return wrong("$.server.package_limit", "expected more than 0");
  if (settings.keep.logs.d < Duration(0)) return wrong("$.keep.logs", "expected a time that is not negative");
  if (settings.keep.events.d < Duration(0)) return wrong("$.keep.events", "expected a time that is not negative");
  if (settings.keep.log_total.n < 0) return wrong("$.keep.log_total", "expected a size that is not negative");
  return {};
}

Result<std::string> find_agent(const std::string& asked) {
  if (!asked.empty()) {
    std::error_code error;
    const fs::path absolute = fs::absolute(asked, error);
    if (!error && ::access(asked.c_str(), X_OK) == 0) return absolute.string();
    return fail(ErrorCode::not_found, "--agent {}: no such program", asked);
  }
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const std::string beside = (self.parent_path() / "helio-agent").string();
  if (!error && ::access(beside.c_str(), X_OK) == 0) return beside;
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
  std::string_view rest = path == nullptr ? std::string_view() : std::string_view(path);
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/helio-agent";
    if (candidate[0] == '/' && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  return fail(ErrorCode::not_found, "helio-agent is neither beside heliostatd nor in PATH");
}

}  // namespace helio::daemon
