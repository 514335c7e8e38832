#include "auth/endings.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace helio::auth {
namespace {

/// Runs what is due when it is told to, on virtual time.
class HandExecutor final : public Executor {
 public:
  explicit HandExecutor(ManualClock& clock) : clock_(clock) {}
  void post(Task task) override { posted_.push_back(std::move(task)); }
  TimerId after(Duration delay, Task task) override {
    timers_.emplace(++last_, std::pair(clock_.mono() + delay, std::move(task)));
    return last_;
  }
  void cancel(TimerId timer) override { timers_.erase(timer); }

  int run() {
    int ran = 0;
    for (; !posted_.empty(); ++ran) {
      Task task = std::move(posted_.front());
      posted_.pop_front();
      task();
    }
    return ran;
  }
  /// Lets time pass, and what falls due in it happen.
  void pass(Duration span) {
    clock_.advance(span);
    for (auto timer = timers_.begin(); timer != timers_.end();) {
      if (timer->second.first > clock_.mono()) {
        ++timer;
        continue;
      }
      Task task = std::move(timer->second.second);
      timers_.erase(timer);
      task();
      timer = timers_.begin();
    }
    run();
  }
  [[nodiscard]] std::size_t timers() const { return timers_.size(); }

 private:
  ManualClock& clock_;
  std::deque<Task> posted_;
  std::map<TimerId, std::pair<MonoTime, Task>> timers_;
  TimerId last_ = 0;
};

class EndingsTest : public testing::Test {
 protected:
  EndingsTest()
      : db(std::move(*store::open_sqlite({":memory:", clock, true, nullptr}))),
        tokens(*db, clock, rng),
        sessions(*db, clock, rng, tokens),
        executor(clock),
        endings(*db, clock, executor, tokens, sessions) {}

  NewToken token(const std::string& name, std::optional<Timestamp> expires = {}) {
    auto made = tokens.create("admin", name, name, model::AccessRole::developer, expires);
    EXPECT_TRUE(made);
    EXPECT_TRUE(tokens.authenticate(made->secret, "peer"));
    return *made;
  }
  /// Something that is open; `name` is in `ended` as often as its end was told.
  std::unique_ptr<Endings::Watch> open(const std::string& name, const TokenId& token, const SessionId& session = {}) {
    return endings.watch(token, session, [this, name] { ++ended[name]; });
  }
  SessionId login(const NewToken& token) {
    auto made = sessions.login(token.secret, "peer");
    EXPECT_TRUE(made);
    cookies[made->session.id] = made->secret;
    return made->session.id;
  }

  ManualClock clock;
  SystemRng rng;
  std::unique_ptr<store::Store> db;
  Tokens tokens;
  Sessions sessions;
  HandExecutor executor;
  Endings endings;
  std::map<std::string, int> ended;
  std::map<SessionId, std::string> cookies;
};

using Told = std::map<std::string, int>;

TEST_F(EndingsTest, a_revocation_is_told_once_to_all_that_the_token_has_open) {
  const NewToken ann = token("ann");
  const NewToken bob = token("bob");
  const auto one = open("one", ann.token.id);
  const auto two = open("two", ann.token.id);
  const auto other = open("other", bob.token.id);
  auto over = open("over", ann.token.id);
  over.reset();
  executor.run();
  EXPECT_EQ(ended, Told{});
  ASSERT_TRUE(tokens.revoke("admin", ann.token.id));
  executor.run();
  EXPECT_EQ(ended, (Told{{"one", 1}, {"two", 1}}));
  ASSERT_TRUE(tokens.revoke("admin", bob.token.id));
  executor.run();
  EXPECT_EQ(ended, (Told{{"one", 1}, {"two", 1}, {"other", 1}}));
}

TEST_F(EndingsTest, a_logout_ends_what_that_browser_has_open) {
  const NewToken ann = token("ann");
  const SessionId mine = login(ann);
  const SessionId other = login(ann);
  const auto of_mine = open("mine", ann.token.id, mine);
  const auto of_other = open("other", ann.token.id, other);
  const auto of_token = open("token", ann.token.id);
  login(ann);
  executor.run();
  EXPECT_EQ(ended, Told{});
  ASSERT_TRUE(sessions.logout(cookies[mine]));
  executor.run();
  EXPECT_EQ(ended, (Told{{"mine", 1}}));
  ASSERT_TRUE(tokens.revoke("admin", ann.token.id));
  executor.run();
  EXPECT_EQ(ended, (Told{{"mine", 1}, {"other", 1}, {"token", 1}})) << "browsers go with their token";
}

TEST_F(EndingsTest, time_ends_it_without_anybody_doing_anything) {
  const NewToken late = token("late", clock.now() + 20h);
  const NewToken early = token("early", clock.now() + 1h);
  const auto of_late = open("late", late.token.id);
  const auto of_early = open("early", early.token.id);
  const auto of_browser = open("browser", late.token.id, login(late));
  executor.pass(1h - 1s);
  EXPECT_EQ(ended, Told{});
  executor.pass(1s);
  EXPECT_EQ(ended, (Told{{"early", 1}}));
  executor.pass(kSessionLife - 1h);
  EXPECT_EQ(ended, (Told{{"early", 1}, {"browser", 1}}));
  executor.pass(20h - kSessionLife);
  EXPECT_EQ(ended, (Told{{"early", 1}, {"browser", 1}, {"late", 1}}));
}

TEST_F(EndingsTest, an_end_between_being_let_in_and_being_open_is_not_missed) {
  const NewToken ann = token("ann");
  const NewToken bob = token("bob");
  const SessionId browser = login(bob);
  ASSERT_TRUE(tokens.revoke("admin", ann.token.id));
  ASSERT_TRUE(sessions.logout(cookies[browser]));
  executor.run();
  const auto late = open("late", ann.token.id);
  executor.run();
  EXPECT_EQ(ended, (Told{{"late", 1}}));
  const auto late_browser = open("late browser", bob.token.id, browser);
  executor.run();
  EXPECT_EQ(ended, (Told{{"late", 1}, {"late browser", 1}}));
}

TEST_F(EndingsTest, a_new_token_is_not_taken_for_one_that_has_ended) {
  const NewToken ann = token("ann");
  const auto of_ann = open("ann", ann.token.id);
  const auto made = tokens.create("admin", "new", "new", model::AccessRole::viewer, std::nullopt);
  ASSERT_TRUE(made);
  const auto of_new = open("new", made->token.id);  // before anybody has read the tokens again
  executor.run();
  EXPECT_EQ(ended, Told{});
}

TEST_F(EndingsTest, what_has_nothing_to_do_with_it_costs_nothing) {
  const NewToken ann = token("ann");
  ASSERT_TRUE(tokens.revoke("admin", token("nobody").token.id));
  EXPECT_EQ(executor.run(), 0) << "nothing is open";
  {
    const auto one = open("one", ann.token.id);
    executor.run();
    model::Flavor flavor;
    flavor.name = FlavorId("f");
    ASSERT_TRUE(db->write([&](store::WriteTx& tx) { return tx.put(flavor, {}); }));
    executor.run();
    ASSERT_TRUE(db->write([&](store::WriteTx& tx) { return tx.remove<model::Flavor>("f", {}); }));
    EXPECT_EQ(executor.run(), 0) << "another kind of row";
    EXPECT_EQ(executor.timers(), 0U) << "it has no end, so nobody waits for it";
  }
  ASSERT_TRUE(tokens.revoke("admin", ann.token.id));
  EXPECT_EQ(executor.run(), 0) << "it is not open any more";
  EXPECT_EQ(ended, Told{});
}

}  // namespace
}  // namespace helio::auth
