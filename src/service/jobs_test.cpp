#include "service/jobs.h"

#include "base/hash.h"
#include "service/world_for_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <thread>

namespace helio::service {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

model::JobSpec secret_spec() {
  model::JobSpec spec = World::spec();
  spec.env = {{"API_KEY", "tr0ub4dor-and-3", true}, {"PLAIN", "visible-value", false}};
  return spec;
}

class JobsTest : public testing::Test {
 protected:
  void SetUp() override { world.add_pool(); }
  World world;
};

TEST_F(JobsTest, a_submitted_job_waits) {
  const model::Job job = world.submit(World::spec(2));
  EXPECT_THAT(job.id.value, testing::MatchesRegex("j-[0-9a-z]{16}"));
  EXPECT_EQ(job.state, model::JobState::queued);
  EXPECT_EQ(job.owner, "ada");
  EXPECT_FALSE(job.reason.empty());
  EXPECT_GT(job.revision, 0);
  EXPECT_EQ(job.spec.workers[0].flavor, "small");
  const auto stored = world.jobs->get(job.id);
  ASSERT_TRUE(stored);
  EXPECT_EQ(json::encode(*stored), json::encode(job));
}

TEST_F(JobsTest, the_text_of_a_job_is_its_document_with_the_revision) {
  const model::Job job = world.submit(World::spec());
  const auto text = world.jobs->get_text(job.id);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->rfind("{\"revision\":" + std::to_string(job.revision) + ",", 0), 0U) << *text;
  const auto back = json::parse_as<model::Job>(*text);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(json::encode(*back), json::encode(job));
}

model::JobSpec cluster_spec(const std::string& name) {
  model::JobSpec spec;
  spec.type = model::JobType::cluster;
  spec.name = name;
  return spec;
}

TEST_F(JobsTest, of_living_clusters_each_has_its_own_name) {
  const model::Job first = world.submit(cluster_spec("team"));
  EXPECT_EQ(world.jobs->cluster({}, "default", "team"), first.id);
  const auto second = world.jobs->submit(world.caller, cluster_spec("team"), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::conflict);
  EXPECT_EQ(second.error().path(), "$.name");
  EXPECT_THAT(second.error().message(), HasSubstr(first.id.value));
  EXPECT_FALSE(world.jobs->rerun(world.caller, first.id, {})) << "again is a second one too";
  model::JobSpec job = World::spec();
  job.name = "team";
  EXPECT_TRUE(world.jobs->submit(world.caller, job, {})) << "jobs may share names with anything";
  world.submit(cluster_spec("other"));
  EXPECT_EQ(world.jobs->clusters({}, "default", false)->size(), 2U);
  EXPECT_EQ(world.jobs->clusters({}, "elsewhere", false)->size(), 0U);
  EXPECT_EQ(world.jobs->cluster({}, "default", "nobody").error().code(), ErrorCode::not_found);
  EXPECT_EQ(world.jobs->cluster({}, "elsewhere", "team").error().code(), ErrorCode::not_found);
}

TEST_F(JobsTest, the_name_of_a_cluster_that_has_ended_is_free) {
  const model::Job first = world.submit(cluster_spec("team"));
  world.force(first.id, model::JobState::stopped);
  EXPECT_TRUE(world.jobs->clusters({}, "default", false)->empty());
  EXPECT_EQ(world.jobs->clusters({}, "default", true)->size(), 1U);
  EXPECT_EQ(world.jobs->cluster({}, "default", "team"), first.id) << "its record is still found by the name";
  const auto again = world.jobs->rerun(world.caller, first.id, {});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(world.jobs->cluster({}, "default", "team"), again->id);
  ASSERT_TRUE(world.jobs->remove(world.caller, first.id));
  EXPECT_EQ(world.jobs->cluster({}, "default", "team"), again->id) << "the former one does not take the name along";

  world.force(again->id, model::JobState::stopped);
  ASSERT_TRUE(world.jobs->remove(world.caller, again->id));
  EXPECT_EQ(world.jobs->cluster({}, "default", "team").error().code(), ErrorCode::not_found);
}

TEST_F(JobsTest, an_unknown_id_is_not_found) {
  const JobId id("j-nothing");
  EXPECT_EQ(world.jobs->get(id).error().code(), ErrorCode::not_found);
  EXPECT_EQ(world.jobs->get_text(id).error().code(), ErrorCode::not_found);
  EXPECT_EQ(world.jobs->stop(world.caller, id, model::StopReason::user).error().code(), ErrorCode::not_found);
  EXPECT_EQ(world.jobs->rerun(world.caller, id, {}).error().code(), ErrorCode::not_found);
  EXPECT_EQ(world.jobs->remove(world.caller, id).error().code(), ErrorCode::not_found);
  EXPECT_EQ(world.jobs->explain(world.caller, id).error().code(), ErrorCode::not_found);
  EXPECT_EQ(world.jobs->attempts(id).error().code(), ErrorCode::not_found);
  EXPECT_EQ(world.jobs->nodes(id).error().code(), ErrorCode::not_found);
}

TEST_F(JobsTest, a_refused_submit_leaves_nothing_behind) {
  const std::int64_t before = world.db->revision();
  model::JobSpec spec = World::spec(99);
  const auto refused = world.jobs->submit(world.caller, spec, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::resource_exhausted);
  EXPECT_EQ(refused.error().path(), "$.workers[0].count");
  EXPECT_EQ(world.db->revision(), before);
  EXPECT_EQ(world.jobs->list({})->items.size(), 0U);
}

TEST_F(JobsTest, a_script_is_a_file_that_only_we_may_read) {
  model::JobSpec spec;
  spec.entrypoint.script = "set -x\necho hello\n";
  const model::Job bash = world.submit(spec);
  EXPECT_EQ(slurp(world.home.job(bash.id.value) + "/script.sh"), *spec.entrypoint.script);
  spec.entrypoint.language = "python";
  const model::Job python = world.submit(spec);
  const std::string path = world.home.job(python.id.value) + "/script.py";
  EXPECT_EQ(slurp(path), *spec.entrypoint.script);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(JobsTest, the_same_key_answers_the_first_reply_again) {
  const Idempotency key{"POST /v1/jobs", "k1", sha256_hex("body")};
  const auto first = world.jobs->submit(world.caller, World::spec(), key);
  ASSERT_TRUE(first);
  const auto again = world.jobs->submit(world.caller, World::spec(), key);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(json::encode(*again), json::encode(*first));
  EXPECT_EQ(world.jobs->list({})->items.size(), 1U);

  const auto other_body = world.jobs->submit(world.caller, World::spec(1), {"POST /v1/jobs", "k1", sha256_hex("other")});
  ASSERT_FALSE(other_body);
  EXPECT_EQ(other_body.error().code(), ErrorCode::conflict);
  const auto other_principal = world.jobs->submit({"bob", model::AccessRole::developer}, World::spec(), key);
  ASSERT_TRUE(other_principal);
  EXPECT_NE(other_principal->id, first->id);
}

TEST(JobsOnDisk, of_many_at_once_with_one_key_one_job_is_made) {
  World world(true);
  world.add_pool();
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::string> ids;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto job = world.jobs->submit(world.caller, World::spec(), {"POST /v1/jobs", "same", "hash"});
      const std::scoped_lock lock(mutex);
      ids.insert(job ? job->id.value : job.error().text());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ids.size(), 1U);
  EXPECT_EQ(world.jobs->list({})->items.size(), 1U);
}

TEST(JobsOnDisk, secrets_are_nowhere_in_clear) {
  World world(true);
  world.add_pool();
  const auto job = world.jobs->submit(world.caller, secret_spec(), {"POST /v1/jobs", "k", "h"});
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->spec.env[0].value, "***");
  EXPECT_EQ(job->spec.env[1].value, "visible-value");
  EXPECT_THAT(*world.jobs->get_text(job->id), testing::Not(HasSubstr("tr0ub4dor")));
  const auto preview = world.jobs->preview(world.caller, secret_spec());
  ASSERT_TRUE(preview);
  EXPECT_EQ(preview->spec.env[0].value, "***");
  const auto again = world.jobs->rerun(world.caller, job->id, {});
  ASSERT_TRUE(again) << again.error().text();

  std::string key = "job/" + again->id.value + "/env/API_KEY";
  std::string opened;
  ASSERT_TRUE(world.db->read([&](store::ReadTx& tx) -> Result<void> {
    HELIO_TRY(sealed, tx.get_secret(key));
    opened = *world.sealer->open(sealed.value_or(""));
    return {};
  }));
  EXPECT_EQ(opened, "tr0ub4dor-and-3") << "a rerun has the secret";

  std::size_t files = 0;
  bool plain = false;
  for (const auto& entry : fs::recursive_directory_iterator(world.home.root)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string content = slurp(entry.path().string());
    EXPECT_THAT(content, testing::Not(HasSubstr("tr0ub4dor"))) << entry.path();
    plain = plain || content.contains("visible-value");
  }
  EXPECT_GE(files, 2U);
  EXPECT_TRUE(plain) << "the search looks where values are";
}

TEST_F(JobsTest, stop_asks_once) {
  const model::Job job = world.submit(World::spec());
  const auto asked = world.jobs->stop(world.caller, job.id, model::StopReason::user);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->stop, model::StopReason::user);
  ASSERT_TRUE(asked->stop_asked);
  EXPECT_THAT(asked->reason, HasSubstr("ada"));
  world.clock.advance(1s);
  const auto again = world.jobs->stop({"bob", model::AccessRole::op}, job.id, model::StopReason::user);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->revision, asked->revision);
}

TEST_F(JobsTest, stopping_an_ended_job_changes_nothing) {
  const model::Job job = world.submit(World::spec());
  world.force(job.id, model::JobState::failed);
  const auto stopped = world.jobs->stop(world.caller, job.id, model::StopReason::user);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->state, model::JobState::failed);
  EXPECT_EQ(stopped->stop, model::StopReason::none);
}

TEST_F(JobsTest, rerun_is_a_new_job_with_the_same_spec_and_script) {
  model::JobSpec spec;
  spec.entrypoint.script = "echo 1\n";
  spec.name = "mine";
  const model::Job job = world.submit(spec);
  const auto again = world.jobs->rerun(world.caller, job.id, {"POST /v1/jobs/{id}/rerun", "r", "h"});
  ASSERT_TRUE(again);
  EXPECT_NE(again->id, job.id);
  EXPECT_EQ(again->rerun_of, job.id);
  EXPECT_EQ(json::encode(again->spec), json::encode(job.spec));
  EXPECT_EQ(slurp(world.home.job(again->id.value) + "/script.sh"), "echo 1\n");
  const auto replay = world.jobs->rerun(world.caller, job.id, {"POST /v1/jobs/{id}/rerun", "r", "h"});
  ASSERT_TRUE(replay);
  EXPECT_EQ(replay->id, again->id);
}

TEST_F(JobsTest, remove_takes_everything_of_an_ended_job) {
  const model::Job job = world.submit(secret_spec());
  model::Attempt attempt = world.attempt_of(job);
  EXPECT_EQ(world.jobs->remove(world.caller, job.id).error().code(), ErrorCode::precondition_failed);
  const NodeId node_id(attempt.id.value + "-h");
  ASSERT_TRUE(world.logs->open({attempt.id, node_id, "driver"}, "driver"));
  ASSERT_TRUE(world.logs->append({attempt.id, node_id, "driver"}, 0, "hello\n", world.clock.now()));
  world.force(job.id, model::JobState::succeeded);
  const auto alive = world.jobs->remove(world.caller, job.id);
  ASSERT_FALSE(alive);
  EXPECT_THAT(alive.error().message(), HasSubstr(node_id.value));

  auto node = store::get<model::Node>(*world.db, node_id.value);
  node->state = model::NodeState::gone;
  world.put(*node, job.id.value);
  const auto removed = world.jobs->remove(world.caller, job.id);
  ASSERT_TRUE(removed) << removed.error().text();
  EXPECT_EQ(world.jobs->get(job.id).error().code(), ErrorCode::not_found);
  EXPECT_FALSE(fs::exists(world.home.job(job.id.value)));
  EXPECT_EQ(world.logs->list(attempt.id)->size(), 0U);
  EXPECT_EQ(store::get<model::Node>(*world.db, node_id.value).error().code(), ErrorCode::not_found);
  ASSERT_TRUE(world.db->read([&](store::ReadTx& tx) -> Result<void> {
    EXPECT_FALSE(*tx.get_secret("job/" + job.id.value + "/env/API_KEY"));
    store::EventQuery query;
    query.job = job.id.value;
    EXPECT_EQ(tx.events(query)->back().type, "job.removed") << "the audit keeps the story";
    return {};
  }));
}

TEST_F(JobsTest, attempts_and_nodes_are_listed) {
  const model::Job job = world.submit(World::spec());
  world.attempt_of(job, 1);
  world.attempt_of(job, 2);
  EXPECT_EQ(world.jobs->attempts(job.id)->size(), 2U);
  EXPECT_EQ(world.jobs->nodes(job.id)->size(), 2U);
}

TEST_F(JobsTest, preview_does_not_ask_for_packages_that_are_uploaded_later) {
  model::JobSpec spec = World::spec();
  spec.runtime_env = json::Object{{"working_dir", "helio://packages/" + std::string(64, '0') + ".zip"}};
  const auto preview = world.jobs->preview(world.caller, spec);
  ASSERT_TRUE(preview) << preview.error().text();
  const auto refused = world.jobs->submit(world.caller, spec, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::not_found);
}

TEST_F(JobsTest, preview_says_what_would_happen) {
  const auto now = world.jobs->preview(world.caller, World::spec(2));
  ASSERT_TRUE(now) << now.error().text();
  EXPECT_TRUE(now->starts_now);
  EXPECT_EQ(now->would, "would start now on local");
  EXPECT_EQ(now->gang.size(), 3U);
  EXPECT_EQ(now->total.cpu.n, 2500);
  EXPECT_EQ(world.jobs->list({})->items.size(), 0U) << "nothing is made";

  const model::Job busy = world.submit(World::spec());
  world.attempt_of(busy);
  world.force(busy.id, model::JobState::running);
  const auto later = world.jobs->preview(world.caller, World::spec(3));
  ASSERT_TRUE(later);
  EXPECT_FALSE(later->starts_now);
  EXPECT_THAT(later->would, HasSubstr("would wait at place 1"));
  EXPECT_THAT(later->would, HasSubstr("CPUs"));
}

TEST_F(JobsTest, explain_agrees_with_the_scheduler) {
  const model::Job busy = world.submit(World::spec());
  world.attempt_of(busy);
  world.force(busy.id, model::JobState::running);
  const model::Job first = world.submit(World::spec(1, "large"));
  world.clock.advance(1s);
  const model::Job second = world.submit(World::spec());

  const auto why_first = world.jobs->explain(world.caller, first.id);
  ASSERT_TRUE(why_first) << why_first.error().text();
  EXPECT_EQ(why_first->position, 1);
  EXPECT_EQ(why_first->constraint, "cpu");
  EXPECT_THAT(why_first->would_help, HasSubstr("2.5 more CPUs"));

  const auto why_second = world.jobs->explain(world.caller, second.id);
  ASSERT_TRUE(why_second);
  EXPECT_EQ(why_second->position, 2);
  EXPECT_EQ(why_second->constraint, "order");
  EXPECT_THAT(why_second->ahead, testing::ElementsAre(first.id));
  EXPECT_THAT(why_second->would_help, HasSubstr("2.5 more CPUs")) << "what the one ahead needs helps this one too";
  EXPECT_THAT(why_second->lines.front(), HasSubstr("job.submitted"));

  ASSERT_TRUE(world.jobs->stop(world.caller, first.id, model::StopReason::user));
  const auto free = world.jobs->explain(world.caller, second.id);
  ASSERT_TRUE(free);
  EXPECT_FALSE(free->position);
  EXPECT_THAT(free->lines.back(), HasSubstr("it fits"));
}

TEST_F(JobsTest, what_waits_ahead_in_another_workspace_is_counted_and_not_named) {
  const model::Job busy = world.submit(World::spec());
  world.attempt_of(busy);
  world.force(busy.id, model::JobState::running);
  const model::Job other = world.submit(World::spec(1, "large"));
  auto moved = world.jobs->get(other.id);
  moved->spec.workspace = "team-b";
  world.put(*moved, other.id.value);
  world.clock.advance(1s);
  const model::Job first = world.submit(World::spec());
  world.clock.advance(1s);
  const model::Job second = world.submit(World::spec());
  Caller caller = world.caller;
  caller.scope.workspaces = {"default"};

  const auto why_first = world.jobs->explain(caller, first.id);
  ASSERT_TRUE(why_first) << why_first.error().text();
  EXPECT_EQ(why_first->position, 2);
  EXPECT_TRUE(why_first->ahead.empty());
  EXPECT_EQ(why_first->would_help, "waits behind 1 other");
  const auto why_second = world.jobs->explain(caller, second.id);
  ASSERT_TRUE(why_second);
  EXPECT_THAT(why_second->ahead, testing::ElementsAre(first.id));
  EXPECT_EQ(why_second->would_help, "waits behind 2 others");
  const auto preview = world.jobs->preview(caller, World::spec());
  ASSERT_TRUE(preview);
  EXPECT_EQ(preview->would, "would wait at place 4 of the queue: others are ahead");
  EXPECT_THAT(world.jobs->explain(world.caller, first.id)->would_help, HasSubstr(other.id.value)) << "to who knows all it is named";
}

TEST_F(JobsTest, another_workspace_takes_no_job) {
  Caller caller = world.caller;
  caller.scope.workspaces = {"team-b"};
  const auto refused = world.jobs->submit(caller, World::spec(), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::not_found);
  EXPECT_EQ(refused.error().path(), "$.workspace");
  EXPECT_EQ(world.jobs->preview(caller, World::spec()).error().text(), refused.error().text());
  const model::Job job = world.submit(World::spec());
  const auto told = [&](const JobId& id) {
    std::string text = world.jobs->check_known(caller.scope, id).error().text();
    for (std::size_t at = text.find(id.value); at != std::string::npos; at = text.find(id.value)) text.replace(at, id.value.size(), "<id>");
    return text;
  };
  EXPECT_EQ(told(job.id), told(JobId("j-none")));
  EXPECT_TRUE(world.jobs->check_known(world.caller.scope, JobId("j-none"))) << "who knows all is told by whoever reads it";
}

TEST_F(JobsTest, explain_tells_back_off_and_verdict) {
  const model::Job job = world.submit(World::spec());
  auto stored = world.jobs->get(job.id);
  stored->state = model::JobState::restarting;
  stored->not_before = world.clock.now() + 30s;
  stored->verdict = model::Verdict{
      "raylet.died", model::CauseClass::node, model::Confidence::high, "the raylet of w1 died", "running", std::nullopt, std::nullopt, {},
      "retry 1 of 5"};
  world.put(*stored, job.id.value);
  const auto why = world.jobs->explain(world.caller, job.id);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->constraint, "back-off");
  EXPECT_THAT(why->lines, testing::Contains(HasSubstr("raylet.died: the raylet of w1 died (retry 1 of 5)")));
}

}  // namespace
}  // namespace helio::service
