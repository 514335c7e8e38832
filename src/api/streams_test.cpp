// What goes on after the head of a reply: waiting, following, watching, commands, files.

#include "api/ray_tail.h"
#include "api/world_for_test.h"
#include "net/client.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

namespace helio::api {
namespace {

/// A streamed reply, read on a thread of its own.
class Reading {
 public:
  Reading(const World& world, const std::string& as, const std::string& target, const std::string& method = "GET",
          const std::string& body = {})
      : client_(world.client(as)) {
    net::ClientRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    thread_ = std::thread([this, request] {
      auto response = client_->stream(request, [this](std::string_view bytes) {
        const std::scoped_lock lock(mutex_);
        text_ += bytes;
        wake_.notify_all();
        return !enough_;
      });
      const std::scoped_lock lock(mutex_);
      status_ = response ? response->status : -1;
      if (response) text_ += response->body;
      wake_.notify_all();
    });
  }
  ~Reading() {
    {
      const std::scoped_lock lock(mutex_);
      enough_ = true;
    }
    client_->cancel();
    thread_.join();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  bool has(const std::string& part) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, 10s, [&] { return text_.contains(part) || status_ != 0; });
    return text_.contains(part);
  }
  std::string so_far() {
    const std::scoped_lock lock(mutex_);
    return text_;
  }
  /// Its status, when it has ended; -1 when it broke off.
  int ended() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wake_.wait_for(lock, 10s, [&] { return status_ != 0; }));
    return status_;
  }
  /// The whole reply, when it has ended.
  std::string whole() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wake_.wait_for(lock, 10s, [&] { return status_ != 0; }));
    return text_;
  }

 private:
  std::unique_ptr<net::HttpClient> client_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string text_;
  int status_ = 0;
  bool enough_ = false;
  std::thread thread_;
};

void revoke(const World& world, const std::string& name) {
  const auto listed = json::parse(world.send("admin", "GET", "/v1/tokens").body);
  for (const json::Value& token : listed->at("items").get_array()) {
    if (std::string_view(token.at("name").get_string()) != name) continue;
    EXPECT_EQ(world.send("admin", "DELETE", "/v1/tokens/" + std::string(token.at("id").get_string())).status, 204);
    return;
  }
  ADD_FAILURE() << "no token " << name;
}

void end_job(World& world, const std::string& job) {
  world.change_job(job, [](model::Job& row) {
    row.state = model::JobState::succeeded;
    row.finished = row.created;
  });
}

TEST(Wait, AnswersWhenTheJobHasEnded) {
  World world;
  const std::string job = world.submit();
  Reading reading(world, "viewer", "/v1/jobs/" + job + "/wait?timeout=60s");
  ASSERT_TRUE(reading.has("\n"));  // the keep-alive says that it waits
  world.change_job(job, [](model::Job& row) { row.reason = "something else"; });
  end_job(world, job);
  const auto document = json::parse(reading.whole());
  ASSERT_TRUE(document);
  EXPECT_EQ(std::string_view(document->at("state").get_string()), "succeeded");
}

TEST(Wait, AnswersAfterItsTimeoutToo) {
  const World world;
  const std::string job = world.submit();
  const auto response = world.send("viewer", "GET", "/v1/jobs/" + job + "/wait?timeout=50ms");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(std::string_view(json::parse(response.body)->at("state").get_string()), "queued");
}

TEST(Events, AreTold) {
  const World world;
  Reading reading(world, "viewer", "/v1/events?watch=true");
  ASSERT_TRUE(reading.has("retry:"));
  const std::string job = world.submit();
  ASSERT_TRUE(reading.has(job));
  EXPECT_TRUE(reading.has("event: job.submitted\n"));
  EXPECT_TRUE(reading.has("id: " + std::to_string(world.store->revision()) + "\n"));
}

TEST(Events, OfOneJobLeaveOthersOut) {
  World world;
  const std::string job = world.submit();
  Reading reading(world, "viewer", "/v1/events?watch=true&since=0&job=" + job);
  ASSERT_TRUE(reading.has("job.submitted"));
  const std::string other = world.submit();
  end_job(world, job);
  ASSERT_TRUE(reading.has("job.state"));
  EXPECT_FALSE(reading.so_far().contains(other));
}

TEST(Events, GoOnFromTheLastId) {
  const World world;
  const std::string first = world.submit();
  const std::string revision = std::to_string(world.store->revision());
  const std::string second = world.submit();
  const auto response = world.send("viewer", "GET", "/v1/events?since=" + revision);
  EXPECT_EQ(response.body.find(first), std::string::npos);
  EXPECT_NE(response.body.find(second), std::string::npos);
}

TEST(Events, DoNotTellWhatRowsHold) {
  World world;
  const std::string job = world.submit();
  world.start_attempt(job);
  const auto events = world.send("viewer", "GET", "/v1/events");
  EXPECT_EQ(events.body.find("token_hash"), std::string::npos);
  const auto nodes = world.send("viewer", "GET", "/v1/nodes");
  EXPECT_NE(nodes.body.find(job + "-1-h"), std::string::npos);
  EXPECT_EQ(nodes.body.find("token_hash"), std::string::npos);
}

class LogsTest : public testing::Test {
 protected:
  LogsTest() {
    job_ = world_.submit();
    world_.start_attempt(job_);
    key_ = {AttemptId(job_ + "-1"), NodeId(job_ + "-1-h"), "driver"};
    EXPECT_TRUE(world_.log_store->open(key_, "driver"));
  }
  void print(const std::string& text) {
    const auto size = world_.log_store->stat(key_)->size;
    EXPECT_TRUE(world_.log_store->append(key_, size, text, SystemClock::instance().now()));
  }
  void end() {
    EXPECT_TRUE(world_.log_store->mark_ended(key_));
    world_.change_attempt(job_ + "-1", [](model::Attempt& attempt) { attempt.state = model::AttemptState::succeeded; });
    end_job(world_, job_);
  }
  std::string target(const std::string& query = {}) const { return "/v1/jobs/" + job_ + "/logs" + query; }

  World world_;
  std::string job_;
  store::StreamKey key_;
};

TEST_F(LogsTest, ThatCannotBeReadToTheEndDoNotEndAsIfTheyWereWhole) {
  std::string text;
  for (int i = 0; text.size() < (1U << 20U); ++i) text += std::to_string(i) + "\n";
  print(text);
  end();
  ASSERT_TRUE(world_.log_store->seal(key_.attempt));
  EXPECT_EQ(world_.send("viewer", "GET", target()).body, text);
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(world_.home.logs())) {
    if (entry.path().extension() != ".zst") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(entry.file_size() / 2));
    file << std::string(64, 'x');
    ++damaged;
  }
  ASSERT_EQ(damaged, 1);
  net::ClientRequest request;
  request.target = target();
  std::string got;
  const auto response = world_.client("viewer")->stream(request, [&](std::string_view bytes) {
    got += bytes;
    return true;
  });
  EXPECT_FALSE(response && response->status == 200) << "the client cannot tell";
  EXPECT_TRUE(text.starts_with(got)) << "nothing but the log is in the text";
}

TEST_F(LogsTest, AreReadAsText) {
  print("one\ntwo\nthree\n");
  const auto all = world_.send("viewer", "GET", target());
  EXPECT_EQ(all.status, 200);
  EXPECT_EQ(all.body, "one\ntwo\nthree\n");
  EXPECT_EQ(net::find_header(all.headers, "X-Total-Size"), "14");
  EXPECT_EQ(world_.send("viewer", "GET", target("?offset=4&limit=3")).body, "two");
  EXPECT_EQ(world_.send("viewer", "GET", target("?offset=-6")).body, "three\n");
  EXPECT_EQ(world_.send("viewer", "GET", target("?grep=t.o")).body, "two\n");
  EXPECT_EQ(world_.send("viewer", "GET", target("?grep=(")).status, 400);
}

TEST_F(LogsTest, AreFollowedUntilTheJobHasEnded) {
  print("first\n");
  Reading reading(world_, "viewer", target("?follow=true"));
  ASSERT_TRUE(reading.has("first\n"));
  print("second\n");
  ASSERT_TRUE(reading.has("second\n"));
  end();
  EXPECT_EQ(reading.whole(), "first\nsecond\n");
}

TEST_F(LogsTest, ALineIsReadableWithin100Milliseconds) {
  print("x\n");
  Reading reading(world_, "viewer", target("?follow=true"));
  ASSERT_TRUE(reading.has("x\n"));
  const SystemClock& clock = SystemClock::instance();
  std::vector<Duration> delays;
  for (int i = 0; i < 20; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    const MonoTime before = clock.mono();
    print(line);
    ASSERT_TRUE(reading.has(line));
    delays.push_back(clock.mono() - before);
  }
  std::ranges::sort(delays);
  EXPECT_LT(delays[delays.size() / 2], 100ms);
}

TEST_F(LogsTest, StreamsAreListed) {
  print("abc\n");
  const auto reply = json::parse(world_.send("viewer", "GET", "/v1/jobs/" + job_ + "/streams").body);
  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->at("items").get_array().size(), 1U);
  EXPECT_EQ(reply->at("items").at(0).at("size").to_number<int>(), 4);
}

TEST_F(LogsTest, WhatIsOpenEndsWithItsToken) {
  print("first\n");
  Reading log(world_, "viewer", target("?follow=true"));
  Reading waiting(world_, "viewer", "/v1/jobs/" + job_ + "/wait?timeout=60s");
  Reading events(world_, "viewer", "/v1/events?watch=true");
  Reading others(world_, "other", target("?follow=true"));
  ASSERT_TRUE(log.has("first\n") && waiting.has("\n") && events.has("retry:") && others.has("first\n"));
  const auto begin = std::chrono::steady_clock::now();
  revoke(world_, "viewer");
  for (Reading* each : {&log, &waiting, &events}) EXPECT_EQ(each->ended(), -1) << "it must not look whole";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  print("second\n");
  ASSERT_TRUE(others.has("second\n")) << "another token's goes on";
  end();
  EXPECT_EQ(others.ended(), 200);
  EXPECT_EQ(others.whole(), "first\nsecond\n");
  EXPECT_EQ(log.so_far(), "first\n");
}

TEST_F(LogsTest, WhatIsOpenEndsAtTheEndOfItsTokensTime) {
  print("first\n");
  const Timestamp end = SystemClock::instance().now() + 1500ms;
  const auto made = world_.send("admin", "POST", "/v1/tokens", R"({"name":"brief","role":"viewer","expires":")" + format_time(end) + "\"}");
  ASSERT_EQ(made.status, 201) << made.body;
  world_.add_token("brief", std::string(json::parse(made.body)->at("secret").get_string()));
  Reading log(world_, "brief", target("?follow=true"));
  ASSERT_TRUE(log.has("first\n"));
  EXPECT_EQ(log.ended(), -1);
  const Timestamp now = SystemClock::instance().now();
  EXPECT_GE(now, end);
  EXPECT_LT(now - end, Duration(1s));
}

/// An agent that answers every exec with "hi" and code 3; or, if it works, with "hi" alone until it is told to give up.
class EchoAgent {
 public:
  enum class Does { answer, work };
  EchoAgent(World& world, const std::string& node, Does does = Does::answer) : does_(does) {
    net::WsHandlers handlers;
    handlers.on_text = [this](std::string_view text) { answer(text); };
    handlers.on_close = [](const Error&) {};
    session_ = net::ws_connect(
        world.loop, world.ws_url(), {{"Authorization", "Bearer agent-token"}}, 10s, [](const std::shared_ptr<net::WsSession>&) {},
        handlers);
    session_->send_text(json::dump(json::Object{{"type", "hello"}, {"hello", json::Object{{"node", node}}}}));
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wake_.wait_for(lock, 10s, [this] { return welcome_; }));
  }
  ~EchoAgent() { session_->close(1000, "bye"); }
  EchoAgent(const EchoAgent&) = delete;
  EchoAgent& operator=(const EchoAgent&) = delete;
  bool gave_up() {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, 10s, [this] { return gave_up_; });
  }

 private:
  void answer(std::string_view text) {
    const auto frame = json::parse(text);
    const std::string_view type = frame->at("type").get_string();
    if (type == "welcome") {
      const std::scoped_lock lock(mutex_);
      welcome_ = true;
      wake_.notify_all();
    }
    if (type == "exec_cancel") {
      const std::scoped_lock lock(mutex_);
      gave_up_ = true;
      wake_.notify_all();
    }
    if (type != "exec") return;
    const auto& id = frame->at("exec").at("id");
    session_->send_text(json::dump(json::Object{{"type", "exec_output"}, {"exec", json::Object{{"id", id}, {"data", "aGkK"}}}}));
    if (does_ == Does::work) return;
    session_->send_text(json::dump(json::Object{{"type", "exec_done"}, {"exec", json::Object{{"id", id}, {"exit_code", 3}}}}));
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  bool welcome_ = false;
  bool gave_up_ = false;
  const Does does_;
  std::shared_ptr<net::WsSession> session_;
};

TEST(RayTail, CutsTextBetweenCharacters) {
  std::string held = "a\xc3";
  EXPECT_EQ(take_whole_characters(held, false), "a");
  held += "\xa9 \xe2\x82";
  EXPECT_EQ(take_whole_characters(held, false), "é ");
  EXPECT_EQ(held, "\xe2\x82");
  EXPECT_EQ(take_whole_characters(held, true), "\\xe2\\x82");
  EXPECT_EQ(held, "");
  held = "\xff\xf0\x9f\x98";
  EXPECT_EQ(take_whole_characters(held, false), "\\xff");
  held += "\x80";
  EXPECT_EQ(take_whole_characters(held, false), "😀");
  for (std::string kept : {"", "x"}) {
    const std::string had = kept;
    EXPECT_EQ(take_whole_characters(kept, false), had);
  }
}

/// A client of Ray's that follows a log.
class Follower {
 public:
  Follower(World& world, const std::string& id, const std::string& as) {
    net::WsHandlers handlers;
    handlers.on_text = [this](std::string_view frame) {
      const std::scoped_lock lock(mutex_);
      text_ += frame;
      longest_ = std::max(longest_, frame.size());
      wake_.notify_all();
    };
    handlers.on_close = [this](const Error& why) {
      const std::scoped_lock lock(mutex_);
      why_ = why;
      wake_.notify_all();
    };
    std::string url = world.ws_url();
    url.replace(url.find("/agent/v1"), std::string::npos, "/ray/default/api/jobs/" + id + "/logs/tail");
    session_ =
        net::ws_connect(world.loop, url, {{"Authorization", "Bearer " + world.token(as)}}, 5s, [](const auto&) {}, std::move(handlers));
  }
  ~Follower() {
    session_->cut();
    end();  // its handlers are ours
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  bool has(std::size_t size) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, 10s, [&] { return text_.size() >= size || why_; }) && text_.size() >= size;
  }
  std::optional<Error> end() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, 10s, [&] { return why_.has_value(); });
    return why_;
  }
  std::string text() {
    const std::scoped_lock lock(mutex_);
    return text_;
  }
  std::size_t longest() {
    const std::scoped_lock lock(mutex_);
    return longest_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string text_;
  std::size_t longest_ = 0;
  std::optional<Error> why_;
  std::shared_ptr<net::WsSession> session_;
};

TEST_F(LogsTest, AreFollowedByRaysClientsToACleanEnd) {
  // A submission under an id of Ray's, that leads to this job.
  model::RaySubmission submission;
  submission.workspace = "default";
  submission.submission_id = "ray-1";
  submission.job = JobId(job_);
  ASSERT_TRUE(world_.store->write([&](store::WriteTx& tx) { return tx.put(submission, {}); }));
  std::string text(200'000, 'x');  // one line, longer than a frame
  text += "\n";
  print(text);
  Follower follower(world_, "ray-1", "viewer");
  ASSERT_TRUE(follower.has(text.size()));
  print("é\n");
  text += "é\n";
  ASSERT_TRUE(follower.has(text.size())) << "and what comes later";
  EXPECT_LE(follower.longest(), 64U << 10U);
  end();
  const auto why = follower.end();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->args().at(0).second, "1000") << why->text();
  EXPECT_EQ(follower.text(), text);
  Follower late(world_, "ray-1", "viewer");
  EXPECT_EQ(late.end()->args().at(0).second, "1000") << "an ended job's log is replayed";
  EXPECT_EQ(late.text(), text);
  EXPECT_EQ(world_.send("viewer", "GET", "/ray/default/api/jobs/ray-1/logs").body,
            R"({"logs": ")" + text.substr(0, 200'000) + R"(\né\n"})");
  for (const auto& [as, id, code] :
       {std::tuple("viewer", "none", ErrorCode::not_found), std::tuple("wrong", "ray-1", ErrorCode::unauthenticated)}) {
    Follower refused(world_, id, as);
    EXPECT_EQ(refused.end()->code(), code);
  }
}

TEST_F(LogsTest, RaysClientsSeeThatTheirTokenEndedAndNotTheirJob) {
  model::RaySubmission submission;
  submission.workspace = "default";
  submission.submission_id = "ray-1";
  submission.job = JobId(job_);
  ASSERT_TRUE(world_.store->write([&](store::WriteTx& tx) { return tx.put(submission, {}); }));
  print("first\n");
  Follower follower(world_, "ray-1", "viewer");
  Follower other(world_, "ray-1", "other");
  ASSERT_TRUE(follower.has(6) && other.has(6));
  revoke(world_, "viewer");
  const auto why = follower.end();
  ASSERT_TRUE(why);
  EXPECT_TRUE(why->args().empty()) << "a close frame would say that the job is over: " << why->text();
  print("second\n");
  EXPECT_TRUE(other.has(13));
}

TEST(RayStatus, AJobBetweenAttemptsIsRunningOnlyIfItRan) {
  World world;
  ASSERT_EQ(world.send("developer", "POST", "/ray/default/api/jobs/", R"({"entrypoint":"true","submission_id":"s"})").status, 200);
  const std::string job(json::parse(world.send("viewer", "GET", "/v1/jobs").body)->at("items").at(0).at("id").get_string());
  const auto status = [&] {
    const auto reply = json::parse(world.send("viewer", "GET", "/ray/default/api/jobs/s").body);
    return std::string(reply->at("status").get_string());
  };
  EXPECT_EQ(status(), "PENDING");
  world.start_attempt(job);
  world.change_job(job, [](model::Job& row) {
    row.state = model::JobState::restarting;
    row.attempts = 1;
  });
  EXPECT_EQ(status(), "PENDING") << "its first attempt never got as far as the entrypoint";
  world.change_attempt(job + "-1", [](model::Attempt& attempt) { attempt.marks.push_back({"submitted", attempt.created}); });
  EXPECT_EQ(status(), "RUNNING");
}

TEST(Exec, StreamsOutputThenTheCode) {
  World world;
  const std::string job = world.submit();
  world.start_attempt(job);
  const EchoAgent agent(world, job + "-1-h");
  const auto reply = world.send("developer", "POST", "/v1/jobs/" + job + "/exec", R"({"argv":["echo","hi"]})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "{\"data\":\"aGkK\"}\n{\"exit_code\":3}\n");
  const auto events = world.send("viewer", "GET", "/v1/jobs/" + job + "/events");
  EXPECT_NE(events.body.find("node.exec"), std::string::npos);
  // A job of somebody else is not open to a developer.
  EXPECT_EQ(world.send("other", "POST", "/v1/jobs/" + job + "/exec", R"({"argv":["echo","hi"]})").status, 403);
  EXPECT_EQ(world.send("op", "POST", "/v1/jobs/" + job + "/exec", R"({"argv":["echo","hi"],"node":"w7"})").status, 404);
}

TEST(Exec, EndsWithItsToken) {
  World world;
  const std::string job = world.submit();
  world.start_attempt(job);
  EchoAgent agent(world, job + "-1-h", EchoAgent::Does::work);
  Reading reply(world, "op", "/v1/jobs/" + job + "/exec", "POST", R"({"argv":["sleep","60"]})");
  ASSERT_TRUE(reply.has("aGkK"));
  revoke(world, "op");
  EXPECT_EQ(reply.ended(), -1);
  EXPECT_FALSE(reply.so_far().contains("exit_code"));
  EXPECT_TRUE(agent.gave_up()) << "the command does not go on with nobody to see it";
}

TEST(Exec, WithoutAnAgentSaysSo) {
  World world;
  const std::string job = world.submit();
  EXPECT_EQ(world.send("developer", "POST", "/v1/jobs/" + job + "/exec", R"({"argv":["true"]})").status, 412);
  world.start_attempt(job);
  EXPECT_EQ(world.send("developer", "POST", "/v1/jobs/" + job + "/exec", R"({"argv":["true"]})").status, 503);
}

TEST(Files, AreListedAndDownloadedAndNothingLeadsOut) {
  namespace fs = std::filesystem;
  const World world;
  const std::string job = world.submit();
  const fs::path outputs = world.home.job_outputs(job);
  fs::create_directories(outputs / "model");
  std::ofstream(outputs / "model" / "weights.bin") << "1234567";
  fs::create_symlink("/etc", outputs / "way-out");
  fs::create_symlink("/etc/passwd", outputs / "passwd");
  const std::string base = "/v1/jobs/" + job + "/files";
  const auto listing = json::parse(world.send("developer", "GET", base + "?path=outputs").body);
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->at("items").get_array().size(), 3U);
  const auto file = world.send("developer", "GET", base + "?path=outputs/model/weights.bin");
  EXPECT_EQ(file.status, 200);
  EXPECT_EQ(file.body, "1234567");
  for (const char* path : {"outputs/way-out/passwd", "outputs/passwd", "outputs/../../../admin.token", "/etc/passwd", "etc", "outputs/./x",
                           "..", "outputs/%2e%2e/x"}) {
    const auto refused = world.send("developer", "GET", base + "?path=" + path);
    EXPECT_EQ(refused.status, 400) << path << ": " << refused.body;
  }
  EXPECT_EQ(world.send("developer", "GET", base + "?path=outputs/none").status, 404);
  EXPECT_EQ(world.send("other", "GET", base + "?path=outputs").status, 403);
}

TEST(Files, OneWhoseNameIsNotUtf8IsListedWithANoteAndHidesNoOther) {
  namespace fs = std::filesystem;
  const World world;
  const std::string job = world.submit();
  const fs::path outputs = world.home.job_outputs(job);
  fs::create_directories(outputs);
  std::ofstream(outputs / "\xff.txt") << "1";
  std::ofstream(outputs / "\xc3\xa9.txt") << "22";
  const std::string base = "/v1/jobs/" + job + "/files";
  const auto listing = json::parse(world.send("developer", "GET", base + "?path=outputs").body);
  ASSERT_TRUE(listing) << listing.error().text();
  const json::Array& items = listing->at("items").get_array();
  ASSERT_EQ(items.size(), 2U);
  for (const json::Value& item : items) {
    const std::string name(item.at("name").get_string());
    const bool odd = name == "\\xff.txt";
    EXPECT_TRUE(odd || name == "\xc3\xa9.txt") << name;
    EXPECT_EQ(item.get_object().contains("note"), odd);
    EXPECT_EQ(std::string_view(item.at("kind").get_string()), odd ? "other" : "file");
  }
  EXPECT_EQ(world.send("developer", "GET", base + "?path=outputs/%C3%A9.txt").body, "22");
}

TEST(Daemon, StopsWhenAsked) {
  World world;
  EXPECT_EQ(world.send("op", "POST", "/v1/daemon/stop").status, 403);
  EXPECT_FALSE(world.stops.try_acquire());
  EXPECT_EQ(world.send("admin", "POST", "/v1/daemon/stop").status, 202);
  EXPECT_TRUE(world.stops.try_acquire_for(10s));
}

TEST(Jobs, AnUnchangedOneIsNotSentAgain) {
  World world;
  const std::string job = world.submit();
  const auto first = world.send("viewer", "GET", "/v1/jobs/" + job);
  const auto tag = net::find_header(first.headers, "ETag");
  ASSERT_TRUE(tag);
  const net::Headers known{{"If-None-Match", std::string(*tag)}};
  EXPECT_EQ(world.send("viewer", "GET", "/v1/jobs/" + job, {}, known).status, 304);
  end_job(world, job);
  EXPECT_EQ(world.send("viewer", "GET", "/v1/jobs/" + job, {}, known).status, 200);
}

}  // namespace
}  // namespace helio::api
