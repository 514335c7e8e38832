#include "cli/outcome.h"

#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/progress.h"
#include "cli/sse.h"
#include "cli/table.h"

#include <gtest/gtest.h>

namespace helio::cli {
namespace {

model::Job ended(model::JobState state, std::string_view cause, std::optional<int> code = std::nullopt) {
  model::Job job;
  job.id = JobId("j-1");
  job.spec.name = "squares";
  job.state = state;
  job.exit_code = code;
  job.created = {1'000'000};
  job.finished = Timestamp{15'200'000};
  job.verdict.emplace();
  job.verdict->cause = cause;
  job.verdict->charged_to = model::cause_class(cause);
  job.verdict->message = "because";
  return job;
}

TEST(Outcome, the_jobs_own_code_is_kept_and_platform_failures_have_theirs) {
  using enum model::JobState;
  EXPECT_EQ(exit_code_of(ended(succeeded, "succeeded", 0)), 0);
  EXPECT_EQ(exit_code_of(ended(failed, "entrypoint.exit", 3)), 3);
  EXPECT_EQ(exit_code_of(ended(failed, "entrypoint.signal", 137)), 137);
  EXPECT_EQ(exit_code_of(ended(failed, "entrypoint.exit", 256)), 1);
  EXPECT_EQ(exit_code_of(ended(failed, "raylet.died", 137)), kExitPlatform);
  EXPECT_EQ(exit_code_of(ended(failed, "unknown")), kExitPlatform);
  EXPECT_EQ(exit_code_of(ended(stopped, "stopped.user")), kExitStopped);
  EXPECT_EQ(exit_code_of(ended(failed, "deadline.run")), kExitDeadline);
  EXPECT_EQ(exit_code_of(ended(failed, "runtime_env.failed")), kExitOwnFault);
}

TEST(Outcome, stages_lie_between_marks_in_order_of_time) {
  model::Attempt attempt;
  attempt.marks = {{"accepted", {0}},        {"admitted", {10'000}},  {"gcs_up", {900'000}},
                   {"agents_up", {300'000}}, {"own_mark", {400'000}}, {"driver_end", {5'900'000}}};
  EXPECT_EQ(stage_line(stages_of(attempt)), "queued 0.01s · agents 0.29s · GCS 0.60s · running 5.00s");
}

TEST(Outcome, the_closing_text_names_cause_evidence_and_what_next) {
  model::Job job = ended(model::JobState::failed, "entrypoint.exit", 3);
  job.verdict->evidence.push_back({"driver", "Traceback\nValueError: no", std::nullopt});
  job.verdict->decision = "final: no retries for user errors";
  const std::string text = closing_text(job, {});
  EXPECT_NE(text.find("squares j-1 failed after 14.2s (exit code 3)"), std::string::npos) << text;
  EXPECT_NE(text.find("entrypoint.exit: because"), std::string::npos);
  EXPECT_NE(text.find("driver: Traceback ValueError: no"), std::string::npos);
  EXPECT_NE(text.find("helio logs j-1"), std::string::npos);
}

TEST(ApiClient, a_problem_document_keeps_message_path_and_arguments) {
  const Error error =
      problem_error(429, R"({"code":"resource_exhausted","detail":"too big","path":"$.workers[0].count","args":{"largest":"3"}})");
  EXPECT_EQ(error.text(), "resource_exhausted at $.workers[0].count: too big [largest=3]");
  EXPECT_EQ(problem_error(502, "<html>").code(), ErrorCode::internal);
  EXPECT_EQ(query({{"a", "x y"}, {"b", ""}, {"c", "1"}}), "?a=x%20y&c=1");
}

TEST(ApiClient, a_name_means_the_job_that_lives_else_the_newest) {
  using enum model::JobState;
  const auto job = [](const char* id, const char* name, model::JobState state) {
    model::Job out;
    out.id = JobId(id);
    out.spec.name = name;
    out.state = state;
    out.created = {1'000'000};
    return out;
  };
  const Timestamp now{31'000'000};
  std::vector<model::Job> jobs{job("j-cc", "slow", stopped), job("j-bb", "slow", failed), job("j-ba", "other", running)};
  EXPECT_EQ(choose_job(jobs, "slow", now).value(), "j-cc");
  jobs[1].state = running;
  EXPECT_EQ(choose_job(jobs, "slow", now).value(), "j-bb");
  jobs[0].state = queued;
  const auto several = choose_job(jobs, "slow", now);
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().text(),
            "conflict: 'slow' means 2 jobs that have not ended (j-cc queued 30s old, j-bb running 30s old); give an id");
  EXPECT_EQ(choose_job(jobs, "j-c", now).value(), "j-cc");
  EXPECT_EQ(choose_job(jobs, "ba", now).value(), "j-ba");
  EXPECT_EQ(choose_job(jobs, "b", now).error().code(), ErrorCode::conflict);
  EXPECT_EQ(choose_job(jobs, "x", now).error().code(), ErrorCode::not_found);
}

TEST(Progress, each_mark_is_said_once_whatever_the_number_of_updates) {
  std::vector<std::string> lines;
  Progress progress([&](const std::string& line) { lines.push_back(line); });
  model::Job job;
  job.created = {1'000'000};
  job.state_since = job.created;
  job.state = model::JobState::queued;
  job.reason = "2 jobs ahead";
  progress.update(job, {}, {1'200'000});
  EXPECT_TRUE(lines.empty());  // most jobs stand in the queue for a moment only
  progress.tick({2'000'000}, 10s);
  progress.update(job, {}, {2'100'000});
  model::Attempt attempt;
  attempt.state = model::AttemptState::starting;
  attempt.reason = "waiting for 1 of 3 nodes";
  attempt.marks = {{"accepted", {1'000'000}}, {"admitted", {2'250'000}}};
  job.state = model::JobState::starting;
  progress.update(job, {attempt}, {2'300'000});
  attempt.marks.push_back({"agents_up", {2'500'000}});
  progress.update(job, {attempt}, {2'600'000});
  attempt.marks.push_back({"ray_exec", {2'400'000}});
  progress.update(job, {attempt}, {2'700'000});
  EXPECT_EQ(lines, (std::vector<std::string>{"   0.00s  accepted", "   1.00s  queued: 2 jobs ahead", "   1.25s  admitted",
                                             "   1.40s  Ray started on the head", "   1.50s  agents up"}));
  progress.tick({3'000'000}, 10s);
  EXPECT_EQ(lines.size(), 5U);
  progress.tick({13'000'000}, 10s);
  EXPECT_EQ(lines.back(), "   12.0s  still waiting: waiting for 1 of 3 nodes");
}

TEST(Progress, a_job_that_is_admitted_at_once_was_never_queued) {
  std::vector<std::string> lines;
  Progress progress([&](const std::string& line) { lines.push_back(line); });
  model::Job job;
  job.created = job.state_since = {1'000'000};
  job.reason = "waiting for its place in the pool";
  progress.update(job, {}, {1'010'000});
  model::Attempt attempt;
  attempt.state = model::AttemptState::ending;
  attempt.marks = {{"accepted", {1'000'000}}, {"admitted", {1'020'000}}, {"agents_up", {1'040'000}}};
  job.state = model::JobState::starting;
  progress.update(job, {attempt}, {1'050'000});
  progress.tick({3'000'000}, 10s);
  EXPECT_EQ(lines, (std::vector<std::string>{"   0.00s  accepted", "   0.02s  admitted", "   0.04s  agents up"}));
}

TEST(Sse, events_come_whole_whatever_the_pieces) {
  const std::string stream = ": ping\n\nid: 7\ndata: {\"a\":\ndata: 1}\n\nevent: resync\r\ndata: x\r\n\r\nid: 9\n\n";
  for (std::size_t size = 1; size < stream.size(); ++size) {
    SseParser parser;
    std::vector<SseEvent> events;
    for (std::size_t at = 0; at < stream.size(); at += size) {
      parser.feed(std::string_view(stream).substr(at, size), [&](const SseEvent& event) { events.push_back(event); });
    }
    ASSERT_EQ(events.size(), 2U) << size;
    EXPECT_EQ(events[0].id, "7");
    EXPECT_EQ(events[0].data, "{\"a\":\n1}");
    EXPECT_EQ(events[1].type, "resync");
  }
}

TEST(Table, columns_align_by_what_is_seen) {
  Table table({"A", "B"});
  table.row({"é", "x"});
  table.row({"abc", ""});
  EXPECT_EQ(table.text(), "A    B\né    x\nabc\n");
  EXPECT_EQ(one_line("a\nb", 10), "a b");
  EXPECT_EQ(one_line("abcdef", 4), "abc…");
  EXPECT_EQ(one_line("äöüß", 3), "äö…");
}

}  // namespace
}  // namespace helio::cli
