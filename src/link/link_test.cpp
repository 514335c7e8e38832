#include "base/hash.h"
#include "base/json/json.h"
#include "link/hub.h"
#include "model/kinds.h"
#include "net/client.h"
#include "rt/event_loop.h"
#include "store/logs/file_log_store.h"
#include "store/observations.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>

namespace helio::link {
namespace {

constexpr Duration kPatience = 10s;

/// Passes everything on; lets a test refuse appends and see what was synced when.
class SpyLogs final : public store::LogStore {
 public:
  explicit SpyLogs(std::unique_ptr<store::LogStore> inner) : inner_(std::move(inner)) {}
  std::atomic<bool> full{false};
  std::atomic<bool> shut{false};
  std::atomic<int> unopened{0};
  std::atomic<int> refused{0};
  std::atomic<int> syncs{0};

  Result<std::int64_t> open(const store::StreamKey& key, std::string_view kind) override {
    if (shut) ++unopened;
    if (shut) return fail(ErrorCode::internal, "not a folder");
    return inner_->open(key, kind);
  }
  Result<std::int64_t> append(const store::StreamKey& key, std::int64_t offset, std::string_view bytes, Timestamp now) override {
    if (full) ++refused;
    if (full) return fail(ErrorCode::storage_full, "no space left on device");
    return inner_->append(key, offset, bytes, now);
  }
  Result<void> mark_ended(const store::StreamKey& key) override { return inner_->mark_ended(key); }
  Result<void> sync(const std::vector<store::StreamKey>& keys) override {
    ++syncs;
    return inner_->sync(keys);
  }
  Result<store::StreamMeta> stat(const store::StreamKey& key) override { return inner_->stat(key); }
  Result<std::vector<store::StreamMeta>> list(const AttemptId& attempt) override { return inner_->list(attempt); }
  Result<std::string> read(const store::StreamKey& key, std::int64_t offset, std::size_t max) override {
    return inner_->read(key, offset, max);
  }
  Result<std::int64_t> offset_at(const store::StreamKey& key, Timestamp time) override { return inner_->offset_at(key, time); }
  std::unique_ptr<Watch> watch(const AttemptId& attempt, std::function<void()> wake) override {
    return inner_->watch(attempt, std::move(wake));
  }
  Result<void> seal(const AttemptId& attempt) override { return inner_->seal(attempt); }
  Result<void> remove(const AttemptId& attempt) override { return inner_->remove(attempt); }
  Result<std::int64_t> total_bytes() override { return inner_->total_bytes(); }

 private:
  std::unique_ptr<store::LogStore> inner_;
};

/// An agent as far as the wire is concerned.
class Agent {
 public:
  Agent(rt::EventLoop& loop, std::uint16_t port, const std::string& token) {
    net::WsHandlers handlers;
    handlers.on_text = [shared = shared_](std::string_view frame) { shared->add(frame); };
    handlers.on_close = [shared = shared_](const Error& why) { shared->close(why); };
    session_ = net::ws_connect(
        loop, "ws://127.0.0.1:" + std::to_string(port) + "/agent/v1", {{"Authorization", "Bearer " + token}}, kPatience,
        [](const std::shared_ptr<net::WsSession>&) {}, std::move(handlers));
  }
  ~Agent() { session_->close(1000, "bye"); }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void send(const json::Value& frame) { session_->send_text(json::dump(frame)); }
  void hello(const std::string& node) {
    send(json::Object{{"type", "hello"}, {"hello", json::Object{{"node", node}, {"agent_version", "0.1.0"}, {"generation", 0}}}});
  }
  void stream(int id, const std::string& name, bool ended = false, std::int64_t size = 0) {
    json::Object info{{"id", id}, {"name", name}, {"kind", "driver"}, {"ended", ended}, {"offset", size}};
    send(json::Object{{"type", "stream"}, {"stream", std::move(info)}});
  }
  void data(std::uint32_t id, std::uint64_t offset, std::string_view bytes) {
    std::string frame(13, '\1');
    for (unsigned i = 0; i < 4; ++i) frame[1 + i] = static_cast<char>(id >> (8 * i));
    for (unsigned i = 0; i < 8; ++i) frame[5 + i] = static_cast<char>(offset >> (8 * i));
    session_->send_binary(frame.append(bytes));
  }
  /// Next frame of this type; others before it are dropped.
  std::optional<json::Object> next(const std::string& type) {
    std::unique_lock lock(shared_->mutex);
    for (;;) {
      while (!shared_->frames.empty()) {
        json::Object frame = std::move(shared_->frames.front());
        shared_->frames.pop_front();
        if (std::string_view(frame["type"].get_string()) == type) return frame;
      }
      if (!shared_->wake.wait_for(lock, kPatience, [&] { return !shared_->frames.empty() || shared_->closed; })) return std::nullopt;
      if (shared_->frames.empty()) return std::nullopt;
    }
  }
  /// Waits for an ack that covers `offset` (and the end) of a stream.
  bool acknowledged(int id, std::int64_t offset, bool ended = false) {
    while (auto frame = next("ack")) {
      for (const json::Value& item : frame->at("streams").get_array()) {
        const json::Object& ack = item.get_object();
        const bool end = ack.contains("ended") && ack.at("ended").get_bool();
        if (ack.at("id").get_int64() == id && ack.at("offset").get_int64() >= offset && (end || !ended)) return true;
      }
    }
    return false;
  }
  std::optional<Error> closed() {
    std::unique_lock lock(shared_->mutex);
    shared_->wake.wait_for(lock, kPatience, [&] { return shared_->closed.has_value(); });
    return shared_->closed;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<json::Object> frames;
    std::optional<Error> closed;
    void add(std::string_view text) {
      auto frame = json::parse(text);
      const std::scoped_lock lock(mutex);
      if (frame && frame->is_object()) frames.push_back(std::move(frame->get_object()));
      wake.notify_all();
    }
    void close(const Error& why) {
      const std::scoped_lock lock(mutex);
      closed = why;
      wake.notify_all();
    }
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::shared_ptr<net::WsSession> session_;
};

class LinkTest : public testing::Test {
 protected:
  static constexpr const char* kNode = "j-a-1-h";
  static constexpr const char* kToken = "secret-of-the-head";

  void SetUp() override {
    char name[] = "/tmp/helio-link-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    auto opened = store::open_sqlite({.path = ":memory:", .clock = clock_, .memory = {}});
    ASSERT_TRUE(opened) << opened.error().text();
    store_ = std::move(*opened);
    auto logs = store::open_file_logs(dir_, clock_);
    ASSERT_TRUE(logs) << logs.error().text();
    logs_ = std::make_unique<SpyLogs>(std::move(*logs));
    put_node(kNode, kToken);
    hub_ = std::make_unique<Hub>(
        *store_, *logs_, clock_,
        [this](const NodeId& id) -> Result<model::Assignment> {
          HELIO_TRY(node, store::get<model::Node>(*store_, id.value));
          model::Assignment out;
          out.node = id;
          out.generation = node.generation;
          out.phase = node.desired;
          return out;
        },
        HubOptions{.version = "0.1.0", .retry_after = 50ms});
    loop_.start();
    net::Router router;
    router.add_websocket("/agent/v1", hub_->handler());
    server_ = std::make_unique<net::Server>(loop_, pool_, std::move(router), net::ServerOptions{});
    ASSERT_TRUE(server_->start());
  }
  void TearDown() override {
    server_->stop();
    hub_->stop();
    pool_.stop();
    loop_.stop();
    hub_.reset();
    std::filesystem::remove_all(dir_);
  }

  void put_node(const std::string& id, const std::string& token) {
    model::Node node;
    node.id = NodeId(id);
    node.attempt = AttemptId("j-a-1");
    node.job = JobId("j-a");
    node.cluster = ClusterId("c-j-a-1");
    node.state = model::NodeState::launched;
    node.token_hash = sha256_hex(token);
    ASSERT_TRUE(store_->write([&](store::WriteTx& tx) { return tx.put(node, {}); }));
  }
  void change_node(const std::function<void(model::Node&)>& change) {
    ASSERT_TRUE(store_->write([&](store::WriteTx& tx) -> Result<void> {
      HELIO_TRY(node, tx.get<model::Node>(kNode));
      change(node);
      return tx.put(node, {});
    }));
  }
  model::Node node() { return *store::get<model::Node>(*store_, kNode); }
  /// Waits for a fact of the store or the hub, woken by commits.
  bool eventually(const std::function<bool()>& holds) {
    std::mutex mutex;
    std::condition_variable wake;
    std::uint64_t commits = 0;
    const auto subscription = store_->subscribe([&](std::int64_t) {
      const std::scoped_lock lock(mutex);
      ++commits;
      wake.notify_all();
    });
    const MonoTime deadline = clock_.mono() + kPatience;
    while (!holds()) {
      if (clock_.mono() > deadline) return false;
      std::unique_lock lock(mutex);
      wake.wait_for(lock, 10ms, [&, before = commits] { return commits != before; });
    }
    return true;
  }
  std::unique_ptr<Agent> connect(const std::string& token = kToken) {
    auto agent = std::make_unique<Agent>(loop_, server_->port(), token);
    agent->hello(kNode);
    EXPECT_TRUE(agent->next("welcome"));
    return agent;
  }
  void status(Agent& agent, std::int64_t sequence, const std::string& step) {
    agent.send(json::Object{{"type", "status"}, {"status", json::Object{{"node", kNode}, {"sequence", sequence}, {"step", step}}}});
  }
  std::string stored(const std::string& stream) {
    auto bytes = logs_->read({AttemptId("j-a-1"), NodeId(kNode), stream}, 0, 64U << 20U);
    return bytes ? *bytes : bytes.error().text();
  }

  const SystemClock& clock_ = SystemClock::instance();
  std::string dir_;
  rt::EventLoop loop_;
  rt::WorkerPool pool_{2, 64, "test"};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<SpyLogs> logs_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<net::Server> server_;
};

TEST_F(LinkTest, WelcomesThenAssignsAndMarksTheNodeAsConnected) {
  auto agent = connect();
  const auto frame = agent->next("assignment");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->at("assignment").at("generation").get_int64(), 1);
  EXPECT_TRUE(eventually([&] { return node().connected; }));
  EXPECT_EQ(node().state, model::NodeState::connected);
  EXPECT_EQ(hub_->connected(), 1U);
}

TEST_F(LinkTest, RefusesATokenThatIsUnknownOrWasRevoked) {
  Agent wrong(loop_, server_->port(), "wrong");
  ASSERT_TRUE(wrong.closed());
  EXPECT_EQ(wrong.closed()->code(), ErrorCode::unauthenticated);
  change_node([](model::Node& n) { n.token_hash.clear(); });
  Agent revoked(loop_, server_->port(), kToken);
  ASSERT_TRUE(revoked.closed());
  EXPECT_EQ(revoked.closed()->code(), ErrorCode::unauthenticated);
}

TEST_F(LinkTest, RefusesAHelloOfAnotherNode) {
  Agent agent(loop_, server_->port(), kToken);
  agent.hello("j-a-1-w1");
  EXPECT_TRUE(agent.closed());
  EXPECT_EQ(hub_->connected(), 0U);
}

TEST_F(LinkTest, PushesEachNewGenerationOnce) {
  auto agent = connect();
  ASSERT_TRUE(agent->next("assignment"));
  change_node([](model::Node& n) {
    n.generation = 2;
    n.desired = model::Phase::joined;
  });
  auto frame = agent->next("assignment");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->at("assignment").at("generation").get_int64(), 2);
  change_node([](model::Node& n) { n.reason = "nothing that the agent must know"; });
  change_node([](model::Node& n) { n.generation = 3; });
  frame = agent->next("assignment");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->at("assignment").at("generation").get_int64(), 3);
}

TEST_F(LinkTest, EndsTheConnectionOfANodeThatIsGone) {
  auto agent = connect();
  ASSERT_TRUE(agent->next("assignment"));
  change_node([](model::Node& n) {
    n.state = model::NodeState::gone;
    n.token_hash.clear();
  });
  EXPECT_TRUE(agent->closed());
}

TEST_F(LinkTest, AnswersAStatusOnceItIsDurable) {
  auto agent = connect();
  status(*agent, 5, "waiting for the GCS");
  const auto frame = agent->next("recorded");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->at("sequence").get_int64(), 5);
  EXPECT_EQ(node().status.step, "waiting for the GCS");
}

TEST_F(LinkTest, DropsAStaleStatusButAnswersIt) {
  auto agent = connect();
  status(*agent, 5, "new");
  ASSERT_TRUE(agent->next("recorded"));
  status(*agent, 4, "old");
  const auto frame = agent->next("recorded");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->at("sequence").get_int64(), 4);
  EXPECT_EQ(node().status.step, "new");
  EXPECT_EQ(node().status.sequence, 5);
}

TEST_F(LinkTest, KeepsUsageInMemory) {
  auto agent = connect();
  agent->send(json::parse(R"({"type":"status","status":{"node":"j-a-1-h","sequence":1,"usage":{"cpu":1.5,"memory":1024}}})").value());
  ASSERT_TRUE(agent->next("recorded"));
  const auto usage = hub_->usage();
  ASSERT_TRUE(usage.contains(NodeId(kNode)));
  EXPECT_DOUBLE_EQ(usage.at(NodeId(kNode)).cpu, 1.5);
}

TEST_F(LinkTest, StoresAStreamAndAcknowledgesAfterTheSync) {
  auto agent = connect();
  agent->stream(1, "driver");
  const auto go = agent->next("stream");
  ASSERT_TRUE(go);
  EXPECT_EQ(go->at("stream").at("offset").get_int64(), 0);
  const int before = logs_->syncs;
  agent->data(1, 0, "hello ");
  agent->data(1, 6, "world\n");
  ASSERT_TRUE(agent->acknowledged(1, 12));
  EXPECT_GT(logs_->syncs.load(), before);
  EXPECT_EQ(stored("driver"), "hello world\n");
  agent->stream(1, "driver", true);
  ASSERT_TRUE(agent->acknowledged(1, 12, true));
  EXPECT_TRUE(logs_->stat({AttemptId("j-a-1"), NodeId(kNode), "driver"})->ended);
}

TEST_F(LinkTest, DropsWhatItHasAndRefusesAGap) {
  auto agent = connect();
  agent->stream(7, "w.out");
  ASSERT_TRUE(agent->next("stream"));
  agent->data(7, 0, "0123");
  agent->data(7, 2, "2345");  // overlaps
  agent->data(7, 9, "9");     // a gap: all of it is refused, once
  agent->data(7, 10, "a");
  agent->stream(7, "w.out", true, 11);  // and so the end cannot be believed
  auto again = agent->next("stream");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at("stream").at("offset").get_int64(), 6);
  agent->data(7, 6, "6789a");
  agent->stream(7, "w.out", true, 11);
  ASSERT_TRUE(agent->acknowledged(7, 11, true));
  EXPECT_EQ(stored("w.out"), "0123456789a");
}

TEST_F(LinkTest, TellsAReconnectedAgentWhereToGoOn) {
  {
    auto agent = connect();
    agent->stream(1, "driver");
    ASSERT_TRUE(agent->next("stream"));
    agent->data(1, 0, "first\n");
    ASSERT_TRUE(agent->acknowledged(1, 6));
  }
  ASSERT_TRUE(eventually([&] { return !node().connected; }));
  auto agent = connect();
  agent->stream(3, "driver");
  const auto go = agent->next("stream");
  ASSERT_TRUE(go);
  EXPECT_EQ(go->at("stream").at("offset").get_int64(), 6);
  agent->data(3, 0, "first\nsecond\n");
  ASSERT_TRUE(agent->acknowledged(3, 13));
  EXPECT_EQ(stored("driver"), "first\nsecond\n");
}

TEST_F(LinkTest, ANewerConnectionReplacesTheOlder) {
  auto first = connect();
  auto second = connect();
  EXPECT_TRUE(first->closed());
  status(*second, 1, "second");
  ASSERT_TRUE(second->next("recorded"));
  EXPECT_EQ(hub_->connected(), 1U);
  EXPECT_TRUE(node().connected);
}

TEST_F(LinkTest, AsksAgainAfterTheDiskWasFull) {
  auto agent = connect();
  agent->stream(1, "driver");
  ASSERT_TRUE(agent->next("stream"));
  logs_->full = true;
  agent->data(1, 0, "lost?\n");
  ASSERT_TRUE(eventually([&] { return logs_->refused > 0; }));
  logs_->full = false;
  const auto again = agent->next("stream");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at("stream").at("offset").get_int64(), 0);
  agent->data(1, 0, "lost?\n");
  ASSERT_TRUE(agent->acknowledged(1, 6));
  EXPECT_EQ(stored("driver"), "lost?\n");
}

TEST_F(LinkTest, TriesAllRefusedStreamsTogetherAndEverMoreSeldom) {
  auto agent = connect();
  logs_->shut = true;
  constexpr int kStreams = 8;
  for (int i = 0; i < kStreams; ++i) agent->stream(i, "w" + std::to_string(i));
  const MonoTime begin = clock_.mono();
  ASSERT_TRUE(eventually([&] { return logs_->unopened >= 5 * kStreams; }));
  // Five rounds: pauses of 50, 100, 200 and 400 ms lie between them.
  EXPECT_GE(clock_.mono() - begin, 700ms);
  EXPECT_LE(logs_->unopened.load(), 5 * kStreams + kStreams);
  logs_->shut = false;
  for (int i = 0; i < kStreams; ++i) EXPECT_TRUE(agent->next("stream"));
}

TEST_F(LinkTest, TakesTheEndOfAStreamThatIsWholeAfterTheDiskWasFull) {
  auto agent = connect();
  agent->stream(1, "driver");
  ASSERT_TRUE(agent->next("stream"));
  agent->data(1, 0, "all of it\n");
  ASSERT_TRUE(agent->acknowledged(1, 10));
  logs_->full = true;
  agent->data(1, 0, "all of it\n");
  ASSERT_TRUE(eventually([&] { return logs_->refused > 0; }));
  logs_->full = false;
  const auto again = agent->next("stream");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at("stream").at("offset").get_int64(), 10);
  agent->stream(1, "driver", true, 10);  // nothing more to send: only the end
  EXPECT_TRUE(agent->acknowledged(1, 10, true));
}

TEST_F(LinkTest, TellsWhereToGoOnWhenAnEndComesTooEarly) {
  auto agent = connect();
  agent->stream(1, "driver");
  ASSERT_TRUE(agent->next("stream"));
  agent->data(1, 0, "half");
  ASSERT_TRUE(agent->acknowledged(1, 4));
  agent->stream(1, "driver", true, 8);
  const auto again = agent->next("stream");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at("stream").at("offset").get_int64(), 4);
  EXPECT_FALSE(logs_->stat({AttemptId("j-a-1"), NodeId(kNode), "driver"})->ended);
}

TEST_F(LinkTest, RunsACommandAndGivesItsOutputAndCode) {
  auto agent = connect();
  ASSERT_TRUE(eventually([&] { return hub_->connected(NodeId(kNode)); }));
  std::mutex mutex;
  std::condition_variable wake;
  std::string output;
  std::optional<Result<std::int32_t>> done;
  ExecHandlers handlers;
  handlers.on_output = [&](const std::string& base64) {
    const std::scoped_lock lock(mutex);
    output += base64;
  };
  handlers.on_done = [&](Result<std::int32_t> result) {
    const std::scoped_lock lock(mutex);
    done = std::move(result);
    wake.notify_all();
  };
  ASSERT_TRUE(hub_->exec(NodeId(kNode), {.argv = {"echo", "hi"}, .seconds = 5}, handlers));
  const auto frame = agent->next("exec");
  ASSERT_TRUE(frame);
  EXPECT_EQ(json::dump(frame->at("exec").at("argv")), R"(["echo","hi"])");
  const auto id = frame->at("exec").at("id");
  agent->send(json::Object{{"type", "exec_output"}, {"exec", json::Object{{"id", id}, {"data", "aGkK"}}}});
  agent->send(json::Object{{"type", "exec_done"}, {"exec", json::Object{{"id", id}, {"exit_code", 3}, {"error", ""}}}});
  std::unique_lock lock(mutex);
  ASSERT_TRUE(wake.wait_for(lock, kPatience, [&] { return done.has_value(); }));
  EXPECT_EQ(output, "aGkK");
  ASSERT_TRUE(*done);
  EXPECT_EQ(**done, 3);
}

TEST_F(LinkTest, WhoIsNoLongerInterestedEndsTheCommand) {
  auto agent = connect();
  ASSERT_TRUE(eventually([&] { return hub_->connected(NodeId(kNode)); }));
  const auto done = std::make_shared<std::atomic<bool>>(false);  // the last command is still there when the test ends
  ExecHandlers handlers;
  handlers.on_output = [](const std::string&) {};
  handlers.on_done = [done](const Result<std::int32_t>&) { *done = true; };
  const auto cancel = hub_->exec(NodeId(kNode), {.argv = {"sleep", "60"}}, handlers);
  ASSERT_TRUE(cancel);
  const auto started = agent->next("exec");
  ASSERT_TRUE(started);
  (*cancel)();
  const auto cancelled = agent->next("exec_cancel");
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->at("exec").at("id"), started->at("exec").at("id"));
  agent->send(json::Object{{"type", "exec_done"}, {"exec", json::Object{{"id", started->at("exec").at("id")}, {"exit_code", 137}}}});
  ASSERT_TRUE(eventually([&] { return done->load(); }));
  (*cancel)();  // nothing is left to end: the next frame is that of the next command
  ASSERT_TRUE(hub_->exec(NodeId(kNode), {.argv = {"true"}}, handlers));
  EXPECT_FALSE(agent->next("exec")->at("exec").at("id") == started->at("exec").at("id"));
}

TEST_F(LinkTest, ALostConnectionEndsItsCommands) {
  auto agent = connect();
  ASSERT_TRUE(eventually([&] { return hub_->connected(NodeId(kNode)); }));
  std::mutex mutex;
  std::condition_variable wake;
  std::optional<Result<std::int32_t>> done;
  ExecHandlers handlers;
  handlers.on_output = [](const std::string&) {};
  handlers.on_done = [&](Result<std::int32_t> result) {
    const std::scoped_lock lock(mutex);
    done = std::move(result);
    wake.notify_all();
  };
  ASSERT_TRUE(hub_->exec(NodeId(kNode), {.argv = {"sleep", "60"}}, handlers));
  ASSERT_TRUE(agent->next("exec"));
  agent.reset();
  std::unique_lock lock(mutex);
  ASSERT_TRUE(wake.wait_for(lock, kPatience, [&] { return done.has_value(); }));
  EXPECT_FALSE(*done);
  EXPECT_FALSE(hub_->exec(NodeId("j-a-1-w9"), {.argv = {"true"}}, {}));
}

TEST_F(LinkTest, CarriesMegabytesWithoutLosingAByte) {
  auto agent = connect();
  agent->stream(1, "driver");
  ASSERT_TRUE(agent->next("stream"));
  std::string all;
  std::int64_t acked = 0;
  for (int i = 0; i < 64; ++i) {
    const std::string piece(200'000, static_cast<char>('a' + i % 26));
    agent->data(1, all.size(), piece);
    all += piece;
    const auto size = static_cast<std::int64_t>(all.size());
    if (size - acked > (3 << 20)) {  // the window of an agent that keeps the protocol
      acked = size;
      ASSERT_TRUE(agent->acknowledged(1, acked));
    }
  }
  const auto size = static_cast<std::int64_t>(all.size());
  ASSERT_TRUE(acked == size || agent->acknowledged(1, size));
  EXPECT_TRUE(stored("driver") == all);
}

}  // namespace
}  // namespace helio::link
