#include "cli/context.h"

#include "base/json/yaml.h"

#include <cstdio>
#include <cstdlib>

namespace helio::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Result<Context> context_from_environment() {
  Context context;
  context.home.root = environment("HELIOSTAT_HOME");
  if (context.home.root.empty()) {
    const std::string user_home = environment("HOME");
    if (user_home.empty()) return fail(ErrorCode::precondition_failed, "neither HELIOSTAT_HOME nor HOME is set; set HELIOSTAT_HOME");
    context.home.root = user_home + "/.heliostat";
  }
  context.url = environment("HELIOSTAT_URL");
  context.token = environment("HELIOSTAT_TOKEN");
  context.roots = environment("HELIOSTAT_CA");
  return context;
}

void print_document(const Context& context, const json::Value& value) {
  const std::string text = context.output() == Output::yaml ? json::to_yaml(value) : json::dump_pretty(value);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (text.empty() || text.back() != '\n') std::fputc('\n', stdout);
}

}  // namespace helio::cli
