#include "cli/spec_flags.h"

#include "base/json/yaml.h"
#include "model/job.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <functional>

namespace helio::cli {
namespace {

std::optional<std::string> nothing(const std::string&) { return std::nullopt; }

Result<json::Object> build(const SpecFlags& flags, std::vector<std::string> argv = {"python", "a.py"}) {
  return build_spec(flags, argv, nothing);
}

std::string text(const Result<json::Object>& spec) { return spec ? json::dump(*spec) : spec.error().text(); }

class File {
 public:
  explicit File(const std::string& content, const std::string& suffix = "") {
    std::string name = "/tmp/helio-spec-XXXXXX" + suffix;
    const int fd = ::mkstemps(name.data(), static_cast<int>(suffix.size()));
    if (fd >= 0) ::close(fd);
    path_ = name;
    std::ofstream(path_) << content;
  }
  ~File() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(SpecFlags, only_what_was_said_is_sent) { EXPECT_EQ(text(build({})), R"({"entrypoint":{"argv":["python","a.py"]}})"); }

TEST(SpecFlags, words_after_dashes_stay_as_they_are) {
  EXPECT_EQ(text(build({}, {"sh", "-c", "echo '$HOME'  \"x\"", ""})), R"({"entrypoint":{"argv":["sh","-c","echo '$HOME'  \"x\"",""]}})");
}

TEST(SpecFlags, worker_groups_come_in_three_forms) {
  EXPECT_EQ(json::dump(build({.workers = {"2"}})->at("workers")), R"([{"count":2}])");
  EXPECT_EQ(json::dump(build({.workers = {"2:big"}})->at("workers")), R"([{"count":2,"flavor":"big"}])");
  EXPECT_EQ(json::dump(build({.workers = {"name=a,count=1", "count=3,flavor=gpu"}})->at("workers")),
            R"([{"name":"a","count":1},{"count":3,"flavor":"gpu","name":"workers-2"}])");
  EXPECT_EQ(json::dump(build({.workers = {"0"}})->at("workers")), "[]");
  for (const char* wrong : {"two", "2x", "", "flavor=big", "count=x", "count=1,color=red", "1:2=3"}) {
    const auto spec = build({.workers = {wrong}});
    ASSERT_FALSE(spec) << wrong;
    EXPECT_EQ(spec.error().code(), ErrorCode::invalid_argument);
    EXPECT_NE(spec.error().message().find("--workers"), std::string::npos);
  }
}

TEST(SpecFlags, a_negative_count_is_left_to_the_daemon_that_names_its_path) {
  EXPECT_EQ(json::dump(build({.workers = {"-1"}})->at("workers")), R"([{"count":-1}])");
}

TEST(SpecFlags, variables_come_from_flags_files_and_the_caller) {
  const File file("# comment\nexport A=1\nB=\"two words\"\n\nC=x=y\n");
  const auto mine = [](const std::string& name) { return name == "MINE" ? std::optional<std::string>("m") : std::nullopt; };
  const auto spec = build_spec({.env = {"A=2", "MINE"}, .secret_env = {"S=hidden"}, .env_files = {file.path()}}, {"x"}, mine);
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(json::dump(spec->at("env")),
            R"([{"name":"B","value":"two words"},{"name":"C","value":"x=y"},{"name":"A","value":"2"},{"name":"MINE","value":"m"},)"
            R"({"name":"S","value":"hidden","secret":true}])");
  const auto absent = build({.env = {"NOT_SET"}});
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message().find("NOT_SET"), std::string::npos);
}

TEST(SpecFlags, requirements_are_read_and_pip_options_refused) {
  const File file("# x\nrequests==2.32  # why\n\nnumpy\n");
  EXPECT_EQ(json::dump(build({.pip = {"a"}, .requirements = file.path()})->at("requirements")), R"(["a","requests==2.32","numpy"])");
  const File options("-r other.txt\n");
  ASSERT_FALSE(build({.requirements = options.path()}));
}

TEST(SpecFlags, flags_win_over_the_job_file) {
  const File file("name: from-file\nimage: a\nworkers:\n- count: 4\nentrypoint:\n  command: echo hi\nlimits:\n  run: 1h\n", ".yaml");
  const auto spec = build_spec({.file = file.path(), .name = "flag", .workers = {"1"}, .max_run_time = "5m"}, {}, nothing);
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(json::dump(*spec),
            R"({"name":"flag","image":"a","workers":[{"count":1}],"entrypoint":{"command":"echo hi"},"limits":{"run":"5m"}})");
  const auto other = build_spec({.file = file.path()}, {"python", "b.py"}, nothing);
  ASSERT_TRUE(other);
  EXPECT_EQ(json::dump(other->at("entrypoint")), R"({"argv":["python","b.py"]})");
}

TEST(SpecFlags, exactly_one_thing_to_run) {
  EXPECT_FALSE(build({}, {}));
  EXPECT_FALSE(build({.command = "x"}, {"y"}));
  const File script("print(1)\n", ".py");
  const auto spec = build({.script = script.path()}, {});
  ASSERT_TRUE(spec);
  EXPECT_EQ(json::dump(spec->at("entrypoint")), R"({"script":"print(1)\n","language":"python"})");
  const auto missing = build({.script = "/nowhere/x.py"}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::not_found);
}

TEST(SpecFlags, runtime_env_is_text_or_a_file_and_keeps_what_flags_do_not_say) {
  const auto spec = build({.runtime_env = R"({"env_vars": {"A": "1"}})", .working_dir = "src"});
  ASSERT_TRUE(spec);
  EXPECT_EQ(json::dump(spec->at("runtime_env")), R"({"env_vars":{"A":"1"},"working_dir":"src"})");
  EXPECT_FALSE(build({.runtime_env = "{broken"}));
}

TEST(SpecFlags, policies_and_resources_decode_as_a_spec) {
  SpecFlags flags;
  flags.max_run_time = "2h";
  flags.retries = {"user=1", "node=0"};
  flags.retain = "head=10m";
  flags.num_cpus = 2;
  flags.memory = "1GiB";
  flags.mounts = {"/data:/mnt/data:ro"};
  flags.labels = {"team=a"};
  flags.priority = 9;
  const auto spec = build(flags);
  ASSERT_TRUE(spec) << spec.error().text();
  const auto decoded = json::decode<model::JobSpec>(json::Value(*spec));
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(decoded->limits.run.d, 2h);
  EXPECT_EQ(decoded->retries.user, 1);
  EXPECT_EQ(decoded->retention.nodes, model::Retain::head);
  EXPECT_EQ(decoded->retention.time.d, 10min);
  EXPECT_EQ(decoded->entrypoint.resources->memory, 1_GiB);
  ASSERT_EQ(decoded->mounts.size(), 1U);
  EXPECT_EQ(decoded->mounts[0].target, "/mnt/data");
  EXPECT_TRUE(decoded->mounts[0].read_only);
  EXPECT_EQ(decoded->labels.at("team"), "a");
  EXPECT_FALSE(build({.retries = {"user"}}));
  EXPECT_FALSE(build({.retain = "head"}));
}

TEST(SpecFlags, a_mount_without_a_source_is_refused) {
  for (const char* wrong : {"", ":", "::", ":/x", ":x:ro", "/a:/b:/c", ":ro"}) {
    SpecFlags flags;
    flags.mounts = {wrong};
    const auto spec = build_spec(flags, {"true"}, nothing);
    ASSERT_FALSE(spec) << wrong;
    EXPECT_EQ(spec.error().code(), ErrorCode::invalid_argument);
  }
}

TEST(SpecFlags, files_without_an_end_are_refused_by_the_name_of_their_flag) {
  const std::pair<const char*, std::function<void(SpecFlags&, const std::string&)>> flags[] = {
      {"--env-file", [](SpecFlags& to, const std::string& path) { to.env_files = {path}; }},
      {"--requirements", [](SpecFlags& to, const std::string& path) { to.requirements = path; }},
      {"--runtime-env", [](SpecFlags& to, const std::string& path) { to.runtime_env = path; }},
      {"--script", [](SpecFlags& to, const std::string& path) { to.script = path; }}};
  const File large(std::string((1U << 20U) + 1, '#'));
  for (const auto& [name, set] : flags) {
    for (const std::string& path : {std::string("/dev/zero"), large.path()}) {
      SpecFlags with;
      set(with, path);
      const bool script = !with.script.empty();
      const auto spec = build_spec(with, script ? std::vector<std::string>() : std::vector<std::string>{"true"}, nothing);
      ASSERT_FALSE(spec) << name << path;
      EXPECT_NE(spec.error().message().find(name), std::string::npos) << spec.error().text();
    }
  }
}

}  // namespace
}  // namespace helio::cli
