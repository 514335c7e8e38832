#include "service/resolve.h"

#include "base/rng.h"
#include "service/catalog_for_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace helio::service {
namespace {

Result<Resolved> resolve_text(const std::string& text, const Catalog& catalog = catalog_for_test()) {
  HELIO_TRY(spec, json::parse_as<model::JobSpec>(text));
  return resolve(spec, catalog);
}

std::string with(const std::string& more) {
  return R"({"entrypoint":{"argv":["python","train.py"]})" + (more.empty() ? "" : "," + more) + "}";
}
std::string with_env(const std::string& runtime_env) { return with("\"runtime_env\":" + runtime_env); }

struct Case {
  std::string text;
  ErrorCode code;
  const char* path;
  const char* says;
};

void expect_errors(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const auto resolved = resolve_text(c.text);
    ASSERT_FALSE(resolved) << "accepted: " << c.text;
    EXPECT_EQ(to_string(resolved.error().code()), to_string(c.code)) << c.text << "\n" << resolved.error().text();
    EXPECT_EQ(resolved.error().path(), c.path) << c.text << "\n" << resolved.error().text();
    EXPECT_NE(resolved.error().message().find(c.says), std::string::npos) << c.text << "\n" << resolved.error().text();
  }
}

constexpr auto kBad = ErrorCode::invalid_argument;
constexpr auto kNone = ErrorCode::not_found;
constexpr auto kFull = ErrorCode::resource_exhausted;

TEST(Resolve, fills_every_gap) {
  const auto resolved = resolve_text(with(R"("workers":[{"count":2}])"));
  ASSERT_TRUE(resolved) << resolved.error().text();
  const model::JobSpec& spec = resolved->spec;
  EXPECT_EQ(spec.name, "train.py");
  EXPECT_EQ(spec.head.flavor, "head");
  EXPECT_EQ(spec.head.schedulable, false);
  EXPECT_EQ(spec.workers[0].flavor, "small");
  EXPECT_EQ(spec.workers[0].object_store_memory->n, (2LL << 30) / 10 * 3);
  ASSERT_EQ(resolved->members.size(), 3U);
  EXPECT_EQ(resolved->members[0].role, model::Role::head);
  EXPECT_TRUE(resolved->warnings.empty()) << resolved->warnings.front();
}

TEST(Resolve, without_workers_the_head_works) {
  const auto resolved = resolve_text(with(""));
  ASSERT_TRUE(resolved) << resolved.error().text();
  EXPECT_EQ(resolved->spec.head.flavor, "small");
  EXPECT_EQ(resolved->spec.head.schedulable, true);
}

TEST(Resolve, a_job_in_a_cluster_has_the_clusters_image_and_no_nodes_of_its_own) {
  const Catalog catalog = catalog_for_test();
  const auto parsed = json::parse_as<model::JobSpec>(with(R"("cluster":"team","requirements":["numpy"],"limits":{"stop_grace":"5s"})"));
  ASSERT_TRUE(parsed) << parsed.error().text();
  model::JobSpec cluster;
  cluster.image = catalog.images.begin()->first;
  cluster.limits.stop_grace = Span{7s};
  const auto resolved = resolve(*parsed, catalog, &cluster);
  ASSERT_TRUE(resolved) << resolved.error().text();
  EXPECT_EQ(resolved->spec.image, cluster.image);
  EXPECT_EQ(resolved->spec.limits.stop_grace, Span{7s});
  ASSERT_EQ(resolved->warnings.size(), 1U);
  EXPECT_NE(resolved->warnings[0].find("limits.stop_grace is the cluster's: 7.0s"), std::string::npos) << resolved->warnings[0];
  ASSERT_EQ(resolved->members.size(), 1U);
  EXPECT_EQ(resolved->members[0].resources, model::Resources{});
  const auto again = resolve(resolved->spec, catalog, &cluster);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(json::encode(again->spec), json::encode(resolved->spec));
}

TEST(Resolve, a_resolved_spec_resolves_to_itself) {
  const auto once = resolve_text(with(R"("workers":[{"count":2}],"requirements":["numpy"],"mounts":[{"source":"/data/x/"}])"));
  ASSERT_TRUE(once) << once.error().text();
  const auto twice = resolve(once->spec, catalog_for_test());
  ASSERT_TRUE(twice) << twice.error().text();
  EXPECT_EQ(json::encode(twice->spec), json::encode(once->spec));
}

TEST(Resolve, entrypoint_errors) {
  expect_errors({
      {R"({"entrypoint":{}})", kBad, "$.entrypoint", "empty"},
      {R"({"entrypoint":{"argv":[]}})", kBad, "$.entrypoint.argv", "empty"},
      {R"({"entrypoint":{"argv":[""]}})", kBad, "$.entrypoint.argv[0]", "empty"},
      {R"({"entrypoint":{"argv":["a","b\u0000c"]}})", kBad, "$.entrypoint.argv[1]", "NUL"},
      {R"({"entrypoint":{"command":" \n"}})", kBad, "$.entrypoint.command", "empty"},
      {R"({"entrypoint":{"command":"a\nb"}})", kBad, "$.entrypoint.command", "'script'"},
      {R"({"entrypoint":{"script":""}})", kBad, "$.entrypoint.script", "empty"},
      {R"({"entrypoint":{"script":"x","language":"perl"}})", kBad, "$.entrypoint.language", "bash, sh or python"},
      {R"({"entrypoint":{"command":"x","language":"python"}})", kBad, "$.entrypoint.language", "there is none"},
      {R"({"entrypoint":{"command":"x","argv":["y"]}})", kBad, "$.entrypoint", "exactly one"},
      {R"({"entrypoint":{"argv":["x"],"resources":{"num_cpus":4}}})", kBad, "$.entrypoint.resources.num_cpus", "has 1"},
      {R"({"entrypoint":{"argv":["x"],"resources":{"num_cpus":-1}}})", kBad, "$.entrypoint.resources.num_cpus", "expected a number"},
      {R"({"entrypoint":{"argv":["x"],"resources":{"num_gpus":1.5}}})", kBad, "$.entrypoint.resources.num_gpus", "whole"},
      {R"({"entrypoint":{"argv":["x"],"resources":{"memory":"2GiB"}}})", kBad, "$.entrypoint.resources.memory", "no node"},
      {R"({"entrypoint":{"argv":["x"],"resources":{"resources":{"disk":1}}}})", kBad, "$.entrypoint.resources.resources.disk", "no node"},
      {R"({"entrypoint":{"argv":["x"],"resources":{"resources":{"CPU":1}}}})", kBad, "$.entrypoint.resources.resources.CPU", "flavor"},
      {R"({"entrypoint":{"command":")" + std::string(130'000, 'x') + R"("}})", kBad, "$.entrypoint.command", "at most"},
      {R"({"entrypoint":{"script":")" + std::string(1'100'000, 'x') + R"("}})", kBad, "$.entrypoint.script", "at most"},
  });
}

std::string cluster(const std::string& more) { return R"({"type":"cluster","entrypoint":{})" + (more.empty() ? "" : "," + more) + "}"; }

TEST(Resolve, a_cluster_has_a_name_and_a_time_without_use_but_no_entrypoint) {
  const auto resolved = resolve_text(cluster(R"("name":"team-1","workers":[{"count":2}])"));
  ASSERT_TRUE(resolved) << resolved.error().text();
  EXPECT_EQ(resolved->spec.limits.idle, Span{1h});
  EXPECT_TRUE(resolved->spec.ray.dashboard_full);
  EXPECT_EQ(resolved->members.size(), 3U);
  EXPECT_EQ(resolve_text(cluster(R"("name":"a","limits":{"idle":"0s"})"))->spec.limits.idle, Span{0s}) << "never";
  EXPECT_FALSE(resolve_text(with(""))->spec.limits.idle) << "a job is never idle";
  expect_errors({
      {cluster(""), kBad, "$.name", "a cluster needs a name"},
      {cluster(R"("name":"Team 1")"), kBad, "$.name", "a cluster needs a name"},
      {cluster(R"("name":"-a")"), kBad, "$.name", "a cluster needs a name"},
      {cluster("\"name\":\"" + std::string(64, 'a') + "\""), kBad, "$.name", "a cluster needs a name"},
      {R"({"type":"cluster","name":"a","entrypoint":{"command":"true"}})", kBad, "$.entrypoint", "runs nothing by itself"},
      {cluster(R"("name":"a","runtime_env":{})"), kBad, "$.runtime_env", "jobs that are submitted"},
      {cluster(R"("name":"a","requirements":["numpy"])"), kBad, "$.requirements", "jobs that are submitted"},
      {cluster(R"("name":"a","completion":"all")"), kBad, "$.completion", "no end of its own"},
      {cluster(R"("name":"a","limits":{"idle":"5s"})"), kBad, "$.limits.idle", "10s"},
      {with(R"("limits":{"idle":"1h"})"), kBad, "$.limits.idle", "only a long-lived cluster"},
  });
}

TEST(Resolve, identity_and_policy_errors) {
  expect_errors({
      {with(R"("workspace":"x")"), kNone, "$.workspace", "'default'"},
      {with(R"("queue":"x")"), kBad, "$.queue", "'default'"},
      {with(R"("priority":0)"), kBad, "$.priority", "1 to 9"},
      {with(R"("priority":10)"), kBad, "$.priority", "1 to 9"},
      {with(R"("name":"a\nb")"), kBad, "$.name", "control"},
      {with(R"("name":")" + std::string(129, 'n') + "\""), kBad, "$.name", "at most 128"},
      {with(R"("labels":{"a":"x\ny"})"), kBad, "$.labels.a", "control"},
      {with(R"("image":"nope")"), kNone, "$.image", "default, old"},
      {with(R"("retries":{"node":-1})"), kBad, "$.retries.node", "0 to 1000"},
      {with(R"("retries":{"backoff":"1h"})"), kBad, "$.retries.max_backoff", "less than backoff"},
      {with(R"("limits":{"readiness":0})"), kBad, "$.limits.readiness", "expected"},
      {with(R"("limits":{"stop_grace":"2h"})"), kBad, "$.limits.stop_grace", "expected"},
      {with(R"("retention":{"nodes":"head"})"), kBad, "$.retention.time", "how long"},
      {with(R"("retention":{"time":"5m"})"), kBad, "$.retention.nodes", "head or all"},
      {with(R"("checks":"deep")"), kBad, "$.checks", "'none'"},
      {with(R"("log_limit":0)"), kBad, "$.log_limit", "1MiB"},
      {with(R"("disk_limit":"1MiB")"), kBad, "$.disk_limit", "64MiB"},
  });
}

TEST(Resolve, shape_errors) {
  expect_errors({
      {with(R"("workers":[{"count":0}])"), kBad, "$.workers[0].count", "1 or more"},
      {with(R"("workers":[{"count":-3}])"), kBad, "$.workers[0].count", "1 or more"},
      {with(R"("workers":[{"count":1},{"count":1}])"), kBad, "$.workers[1].name", "taken"},
      {with(R"("workers":[{"count":1,"name":"head"}])"), kBad, "$.workers[0].name", "head"},
      {with(R"("workers":[{"count":1,"name":"a b"}])"), kBad, "$.workers[0].name", "label value"},
      {with(R"("workers":[{"count":1,"flavor":"x"}])"), kNone, "$.workers[0].flavor", "head, medium, small"},
      {with(R"("head":{"flavor":"x"})"), kNone, "$.head.flavor", "head, medium, small"},
      {with(R"("head":{"schedulable":false})"), kBad, "$.head.schedulable", "without workers"},
      {with(R"("head":{"object_store_memory":"10MiB"})"), kBad, "$.head.object_store_memory", "at least 75MiB"},
      {with(R"("head":{"object_store_memory":"1GiB"})"), kBad, "$.head.object_store_memory", "shared memory"},
      {with(R"("workers":[{"count":1,"labels":{"-a":"b"}}])"), kBad, "$.workers[0].labels.-a", "label key"},
      {with(R"("workers":[{"count":1,"labels":{"a":"b c"}}])"), kBad, "$.workers[0].labels.a", "label value"},
      {with(R"("workers":[{"count":1,"labels":{"ray.io/x":"b"}}])"), kBad, "$.workers[0].labels['ray.io/x']", "ray.io"},
      {with(R"("workers":[{"count":1,"resources":{"GPU":1}}])"), kBad, "$.workers[0].resources.GPU", "flavor"},
      {with(R"("workers":[{"count":1,"resources":{"x":-1}}])"), kBad, "$.workers[0].resources.x", "0 to"},
      {with(R"("workers":[{"count":9,"name":"a"}])"), kFull, "$.workers[0].count", "can never start"},
      {with(R"("workers":[{"count":2,"name":"a"},{"count":2000000000,"name":"b"}])"), kFull, "$.workers[1].count", "can never start"},
  });
}

TEST(Resolve, a_shape_that_never_fits_comes_with_the_largest_that_does) {
  const auto resolved = resolve_text(with(R"("workers":[{"count":1,"name":"a"},{"count":9,"name":"b"}])"));
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().path(), "$.workers[1].count");
  std::map<std::string, std::string> args(resolved.error().args().begin(), resolved.error().args().end());
  EXPECT_EQ(args["largest"], "6") << "8 GiB... 8 CPUs less 0.5 for the head and 1 for group a hold six more";
  EXPECT_EQ(args["asked"], "9");
  Catalog catalog = catalog_for_test();
  catalog.hosts.clear();
  const auto waits = resolve_text(with(R"("workers":[{"count":9}])"), catalog);
  ASSERT_TRUE(waits) << "a pool whose host has not come up yet refuses nothing";
  EXPECT_FALSE(waits->warnings.empty());
}

TEST(Resolve, variables_and_mounts) {
  expect_errors({
      {with(R"("env":[{"name":"","value":"x"}])"), kBad, "$.env[0].name", "needs a name"},
      {with(R"("env":[{"name":"A=B","value":"x"}])"), kBad, "$.env[0].name", "'='"},
      {with(R"("env":[{"name":"A\u0000","value":"x"}])"), kBad, "$.env[0].name", "NUL"},
      {with(R"("env":[{"name":"A","value":"x\u0000"}])"), kBad, "$.env[0].value", "NUL"},
      {with(R"("env":[{"name":"A","value":"1"},{"name":"A","value":"2"}])"), kBad, "$.env[1].name", "twice"},
      {with(R"("env":[{"name":"RAY_ADDRESS","value":"x"}])"), kBad, "$.env[0].name", "set by heliostat"},
      {with(R"("env":[{"name":"RANK","value":"0"}])"), kBad, "$.env[0].name", "runtime_env.env_vars"},
      {with(R"("env":[{"name":"HELIOSTAT_JOB_ID","value":"x"}])"), kBad, "$.env[0].name", "set by heliostat"},
      {with(R"("env":[{"name":"K","value":"***","secret":true}])"), kBad, "$.env[0].value", "rerun"},
      {with(R"("mounts":[{"source":"data"}])"), kBad, "$.mounts[0].source", "absolute"},
      {with(R"("mounts":[{"source":"/data/../etc"}])"), kBad, "$.mounts[0].source", "'..'"},
      {with(R"("mounts":[{"source":"/database"}])"), kBad, "$.mounts[0].source", "/data"},
      {with(R"("mounts":[{"source":"/etc"}])"), kBad, "$.mounts[0].source", "config.yaml"},
      {with(R"("mounts":[{"source":"/data/a","target":"/b"}])"), kBad, "$.mounts[0].target", "/data/a"},
      {with(R"("mounts":[{"source":"/data/a"},{"source":"/data//a/"}])"), kBad, "$.mounts[1].source", "twice"},
  });
  EXPECT_TRUE(resolve_text(with(R"("env":[{"name":"RAY_DEDUP_LOGS","value":"0"}],"mounts":[{"source":"/data"}])")));
}

TEST(Resolve, runtime_env_wins_over_the_nodes_variable) {
  const auto resolved =
      resolve_text(with(R"("env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"runtime_env":{"env_vars":{"A":"3"}})"));
  ASSERT_TRUE(resolved) << resolved.error().text();
  ASSERT_EQ(resolved->spec.env.size(), 1U);
  EXPECT_EQ(resolved->spec.env[0].name, "B");
  EXPECT_EQ(resolved->warnings.size(), 1U);
}

TEST(Resolve, runtime_env_errors) {
  const std::string package = "helio://packages/" + std::string(64, 'b') + ".zip";
  expect_errors({
      {with_env(R"({"pips":[]})"), kBad, "$.runtime_env.pips", "known are working_dir"},
      {with_env(R"({"pip":["a"],"conda":"x"})"), kBad, "$.runtime_env.conda", "only one"},
      {with_env(R"({"pip":["a"],"uv":["x"]})"), kBad, "$.runtime_env.uv", "only one"},
      {with(R"("requirements":["a"],"runtime_env":{"pip":["b"]})"), kBad, "$.requirements", "shortcut"},
      {with(R"("requirements":["a"],"runtime_env":{"conda":"b"})"), kBad, "$.requirements", "conda"},
      {with(R"("requirements":[""])"), kBad, "$.requirements[0]", "numpy"},
      {with_env(R"({"pip":"requirements.txt"})"), kBad, "$.runtime_env.pip", "list"},
      {with_env(R"({"pip":[1]})"), kBad, "$.runtime_env.pip[0]", "requirements"},
      {with_env(R"({"pip":{}})"), kBad, "$.runtime_env.pip.packages", "missing"},
      {with_env(R"({"pip":{"packages":["a"],"pip_chek":true}})"), kBad, "$.runtime_env.pip.pip_chek", "pip_check"},
      {with_env(R"({"uv":{"packages":["a"],"uv_check":1}})"), kBad, "$.runtime_env.uv.uv_check", "true or false"},
      {with_env(R"({"working_dir":"."})"), kBad, "$.runtime_env.working_dir", "upload"},
      {with_env(R"({"working_dir":"/home/me/code"})"), kBad, "$.runtime_env.working_dir", "helio run"},
      {with_env(R"({"working_dir":"ftp://x/y.zip"})"), kBad, "$.runtime_env.working_dir", "scheme"},
      {with_env(R"({"working_dir":"https://x/y"})"), kBad, "$.runtime_env.working_dir", ".zip"},
      {with_env(R"({"working_dir":"gcs://_ray_pkg_1.zip"})"), kBad, "$.runtime_env.working_dir", "upload"},
      {with_env(R"({"working_dir":"file:///etc/x.zip"})"), kBad, "$.runtime_env.working_dir", "/data"},
      {with_env(R"({"working_dir":"helio://packages/12.zip"})"), kBad, "$.runtime_env.working_dir", "64 hex"},
      {with_env(R"({"working_dir":")" + package + "\"}"), kNone, "$.runtime_env.working_dir", "PUT /v1/packages"},
      {with_env(R"({"py_modules":["https://x/y.zip",")" + package + "\"]}"), kNone, "$.runtime_env.py_modules[1]", "no package"},
      {with_env(R"({"py_modules":"x"})"), kBad, "$.runtime_env.py_modules", "list"},
      {with_env(R"({"env_vars":{"A":1}})"), kBad, "$.runtime_env.env_vars.A", "quotes"},
      {with_env(R"({"env_vars":{"A=B":"1"}})"), kBad, "$.runtime_env.env_vars['A=B']", "'='"},
      {with_env(R"({"env_vars":{"RAY_ADDRESS":"1"}})"), kBad, "$.runtime_env.env_vars.RAY_ADDRESS", "set by heliostat"},
      {with_env(R"({"env_vars":[]})"), kBad, "$.runtime_env.env_vars", "object"},
      {with_env(R"({"conda":"environment.yml"})"), kBad, "$.runtime_env.conda", "content"},
      {with_env(R"({"config":{"setup_timeout_seconds":0}})"), kBad, "$.runtime_env.config.setup_timeout_seconds", "above 0"},
      {with_env(R"({"config":{"eager":true}})"), kBad, "$.runtime_env.config.eager", "known are"},
      {with_env(R"({"excludes":"x"})"), kBad, "$.runtime_env.excludes", "list"},
      {with_env(R"({"worker_process_setup_hook":"setup"})"), kBad, "$.runtime_env.worker_process_setup_hook", "dotted"},
      {with_env(R"({"image_uri":"x","pip":["a"]})"), kBad, "$.runtime_env.pip", "only config"},
      {R"({"entrypoint":{"argv":["x"]},"image":"old","runtime_env":{"working_dir":"https://x/y.tgz"}})", kBad, "$.runtime_env.working_dir",
       "2.9.3"},
  });
}

TEST(Resolve, runtime_env_passes_unchanged) {
  const std::string text =
      R"({"working_dir":"helio://packages/)" + std::string(64, 'a') +
      R"(.zip","py_modules":["https://x/y.whl","s3://b/k.zip"],"pip":{"packages":["a==1"],"pip_check":false,"pip_version":"==24"},)"
      R"("env_vars":{"A":"${HOME}"},"config":{"setup_timeout_seconds":-1,"eager_install":false},"excludes":["*.pt"]})";
  const auto resolved = resolve_text(with_env(text));
  ASSERT_TRUE(resolved) << resolved.error().text();
  EXPECT_EQ(json::Value(*resolved->spec.runtime_env), *json::parse(text));
}

TEST(Resolve, requirements_become_pip) {
  const auto resolved = resolve_text(with(R"("requirements":["numpy==2.1","rich"])"));
  ASSERT_TRUE(resolved) << resolved.error().text();
  EXPECT_EQ(json::dump(json::Value(*resolved->spec.runtime_env)), R"({"pip":["numpy==2.1","rich"]})");
  EXPECT_TRUE(resolved->spec.requirements.empty());
}

TEST(Resolve, names_come_from_the_entrypoint) {
  const auto name = [](const std::string& entrypoint) {
    const auto resolved = resolve_text("{\"entrypoint\":" + entrypoint + "}");
    return resolved ? resolved->spec.name : resolved.error().text();
  };
  EXPECT_EQ(name(R"({"argv":["python3","/work/x/train.py","--lr","1"]})"), "train.py");
  EXPECT_EQ(name(R"x({"argv":["/opt/bin/python","-c","print(1)"]})x"), "python");
  EXPECT_EQ(name(R"({"command":"A=1 ./run.sh x && y"})"), "run.sh");
  EXPECT_EQ(name(R"({"script":"echo hi"})"), "script");
  EXPECT_EQ(name(R"({"argv":["\u4f60"]})"), "job");
}

TEST(Resolve, warnings_help_before_it_hurts) {
  const auto warned = [](const std::string& text, std::string_view about) {
    const auto resolved = resolve_text(text);
    if (!resolved) return false;
    return std::ranges::any_of(resolved->warnings, [&](const std::string& w) { return w.contains(about); });
  };
  EXPECT_TRUE(warned(with(R"("head":{"flavor":"tiny"})"), "under 2GiB"));
  EXPECT_TRUE(warned(with(R"("workers":[{"count":8,"flavor":"tiny"}])"), "few large nodes"));
  EXPECT_TRUE(warned(R"({"entrypoint":{"command":"ray start --head"}})", "already there"));
  EXPECT_TRUE(warned(R"({"entrypoint":{"argv":["ray","job","submit"]}})", "already is a Ray job"));
  EXPECT_TRUE(warned(with(R"("image":"old")"), "knows no tokens"));
  EXPECT_TRUE(warned(with(R"("limits":{"run":"2h","total":"1h"})"), "limits.total"));
  EXPECT_FALSE(warned(with(""), ""));
}

/// Changes one random spot of a document into something random.
void mutate(json::Value& value, Rng& rng) {
  if (value.is_object() && !value.get_object().empty() && rng.chance(0.85)) {
    json::Object& object = value.get_object();
    auto at = object.begin() + static_cast<std::ptrdiff_t>(rng.below(object.size()));
    if (rng.chance(0.08)) {
      const std::string key(at->key());
      json::Value copy = at->value();  // adding a member may move the others
      object[key + "x"] = std::move(copy);
    } else if (rng.chance(0.05)) {
      object.erase(at->key());
    } else {
      mutate(at->value(), rng);
    }
    return;
  }
  if (value.is_array() && !value.get_array().empty() && rng.chance(0.85)) {
    json::Array& array = value.get_array();
    if (rng.chance(0.1)) {
      json::Value copy = array[rng.below(array.size())];
      array.push_back(std::move(copy));
    } else {
      mutate(array[rng.below(array.size())], rng);
    }
    return;
  }
  const json::Array pool{nullptr,
                         true,
                         0,
                         -1,
                         1,
                         3,
                         2147483647,
                         9223372036854775807LL,
                         18446744073709551615ULL,
                         1e300,
                         0.5,
                         "",
                         "x",
                         " ",
                         std::string("a\0b", 3),
                         "***",
                         "small",
                         "head",
                         "default",
                         "nan",
                         "4GiB",
                         "10m",
                         "/data/x",
                         "../..",
                         "helio://packages/",
                         "file://",
                         "://",
                         "=",
                         "\xff\xfe",
                         std::string(5000, 'y'),
                         json::Array{},
                         json::Object{},
                         json::Array{1, "a"},
                         json::Object{{"a", "b"}},
                         json::Object{{"packages", json::Array{"a"}}}};
  value = pool[rng.below(pool.size())];
}

TEST(Resolve, any_mutation_of_a_spec_is_accepted_or_refused_with_a_path) {
  const json::Value valid = *json::parse(
      R"({"name":"n","workspace":"default","queue":"default","priority":5,"image":"default","entrypoint":{"argv":["python","a.py"],
      "resources":{"num_cpus":1,"num_gpus":0,"memory":"100MiB","resources":{"slot":1}}},"head":{"flavor":"head","schedulable":true,
      "object_store_memory":"100MiB"},"workers":[{"name":"w","count":2,"flavor":"small","labels":{"a":"b"},"resources":{"slot":2},
      "object_store_memory":"200MiB"},{"name":"v","count":1}],"runtime_env":{"working_dir":"https://x/y.zip","py_modules":["https://x/y.whl"],
      "pip":{"packages":["a"],"pip_check":true,"pip_version":"==1","pip_install_options":["-q"]},"env_vars":{"A":"1"},"excludes":["x"],
      "config":{"setup_timeout_seconds":5,"eager_install":true,"log_files":["x"]},"worker_process_setup_hook":"a.b","nsight":"default"},
      "env":[{"name":"A","value":"1"},{"name":"S","value":"s","secret":true}],"mounts":[{"source":"/data/x","target":"/data/x","read_only":true}],
      "completion":"all","retries":{"platform":1,"node":1,"unknown":1,"user":1,"backoff":"2s","max_backoff":"10m"},"limits":{"pending":0,
      "readiness":"10m","run":"1h","total":"2h","stop_grace":"30s"},"retention":{"nodes":"head","time":"5m"},"ray":{"log_to_driver":true},
      "checks":"none","labels":{"l":"v"},"log_limit":"1GiB","disk_limit":"1GiB"})");
  const Catalog catalog = catalog_for_test();
  ASSERT_TRUE(resolve_text(json::dump(valid))) << resolve_text(json::dump(valid)).error().text();
  SeededRng rng(20260731);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    json::Value mutant = valid;
    for (std::uint64_t n = rng.below(3) + 1; n > 0; --n) mutate(mutant, rng);
    const auto spec = json::decode<model::JobSpec>(mutant);
    const Result<Resolved> resolved = spec ? resolve(*spec, catalog) : std::unexpected(spec.error());
    if (resolved) {
      ++accepted;
      EXPECT_TRUE(resolve(resolved->spec, catalog)) << "not stable: " << json::dump(mutant);
      continue;
    }
    const ErrorCode code = resolved.error().code();
    EXPECT_TRUE(code == kBad || code == kNone || code == kFull) << resolved.error().text() << "\n" << json::dump(mutant);
    EXPECT_TRUE(resolved.error().path().starts_with("$")) << resolved.error().text() << "\n" << json::dump(mutant);
    EXPECT_FALSE(resolved.error().message().empty());
  }
  EXPECT_GT(accepted, 500);
  EXPECT_LT(accepted, 19'000);
}

}  // namespace
}  // namespace helio::service
