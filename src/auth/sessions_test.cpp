#include "auth/sessions.h"
#include "base/hash.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace helio::auth {
namespace {

class SessionsTest : public testing::Test {
 protected:
  SessionsTest()
      : db(std::move(*store::open_sqlite({":memory:", clock, true, nullptr}))), tokens(*db, clock, rng), sessions(*db, clock, rng, tokens) {
    auto made = tokens.create("admin", "ann", "ann", model::AccessRole::developer, std::nullopt);
    EXPECT_TRUE(made);
    token = made->secret;
    ann = {made->token.id, "ann", model::AccessRole::developer};
  }
  std::string login() {
    auto made = sessions.login(token, "peer");
    EXPECT_TRUE(made) << made.error().text();
    return made->secret;
  }
  bool good(const std::string& secret) {
    const auto found = sessions.find(secret);
    EXPECT_TRUE(found);
    const auto known = sessions.known(secret);
    EXPECT_EQ(found->has_value(), known.has_value()) << "the quick answer is the same";
    return found->has_value();
  }
  std::size_t rows() { return store::list<model::BrowserSession>(*db)->items.size(); }

  ManualClock clock;
  SystemRng rng;
  std::unique_ptr<store::Store> db;
  Tokens tokens;
  Sessions sessions;
  std::string token;
  Identity ann;
};

TEST_F(SessionsTest, a_token_becomes_a_cookie_until_logout) {
  EXPECT_FALSE(sessions.login("hst_wrong", "peer"));
  const std::string cookie = login();
  const auto found = sessions.find(cookie);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->who.principal, "ann");
  EXPECT_EQ((*found)->who.role, model::AccessRole::developer);
  EXPECT_FALSE((*found)->job);
  const SessionId id = (*found)->session;
  EXPECT_EQ(sessions.end_of(id).value(), clock.now() + kSessionLife);
  EXPECT_EQ(sessions.known_end_of(id), clock.now() + kSessionLife);
  const std::string other = login();
  ASSERT_TRUE(sessions.logout(cookie));
  EXPECT_FALSE(good(cookie));
  EXPECT_EQ(sessions.known_end_of(id), std::nullopt) << "not current";
  EXPECT_EQ(sessions.end_of(id).value(), std::nullopt);
  EXPECT_TRUE(good(other)) << "only this browser is out";
  EXPECT_TRUE(sessions.logout(cookie)) << "twice is no error";
}

TEST_F(SessionsTest, what_is_stored_opens_nothing) {
  const std::string cookie = login();
  for (const auto& row : store::list<model::BrowserSession>(*db)->items) {
    EXPECT_EQ(row.hash, sha256_hex(cookie));
    EXPECT_FALSE(good(row.hash));
    EXPECT_FALSE(good(row.id.value));
  }
  EXPECT_FALSE(good(""));
  EXPECT_FALSE(good(std::string(100'000, 'x')));
}

TEST_F(SessionsTest, end_with_their_time_and_with_their_token) {
  const std::string cookie = login();
  clock.advance(kSessionLife - 1s);
  EXPECT_TRUE(good(cookie));
  clock.advance(1s);
  EXPECT_FALSE(good(cookie));
  const std::string second = login();
  EXPECT_EQ(rows(), 1U) << "the old row is swept";
  ASSERT_TRUE(tokens.revoke("admin", ann.token));
  EXPECT_FALSE(good(second));
}

TEST_F(SessionsTest, are_known_after_a_restart) {
  const std::string cookie = login();
  Tokens tokens2(*db, clock, rng);
  Sessions restarted(*db, clock, rng, tokens2);
  EXPECT_FALSE(restarted.known(cookie)) << "nothing is in memory yet";
  const auto found = restarted.find(cookie);
  EXPECT_TRUE(found && *found);
  EXPECT_TRUE(restarted.known(cookie));
}

TEST_F(SessionsTest, a_link_opens_once_for_one_job) {
  const auto link = sessions.make_link(ann, JobId("j-1"), true);
  ASSERT_TRUE(link);
  EXPECT_FALSE(good(link->secret)) << "a link is no cookie";
  const auto opened = sessions.open_link(link->secret);
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_NE(opened->secret, link->secret);
  const auto found = sessions.find(opened->secret);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->job, JobId("j-1"));
  EXPECT_TRUE((*found)->read_only);
  const auto again = sessions.open_link(link->secret);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::unauthenticated);
  EXPECT_FALSE(sessions.open_link(opened->secret)) << "a cookie is no link";
}

TEST_F(SessionsTest, a_link_is_over_after_its_time) {
  const auto link = sessions.make_link(ann, JobId("j-1"), false);
  clock.advance(kLinkLife);
  EXPECT_FALSE(sessions.open_link(link->secret));
}

TEST_F(SessionsTest, a_token_has_a_bounded_number_of_them) {
  const std::string first = login();
  for (std::size_t i = 0; i < kMostOfAToken + 5; ++i) {
    clock.advance(1s);
    ASSERT_TRUE(sessions.make_link(ann, JobId("j-1"), false));
  }
  EXPECT_EQ(rows(), kMostOfAToken);
  EXPECT_FALSE(good(first)) << "the oldest made room";
}

TEST_F(SessionsTest, of_many_that_open_a_link_at_once_one_gets_in) {
  for (int round = 0; round < 20; ++round) {
    const auto link = sessions.make_link(ann, JobId("j-1"), false);
    std::atomic<int> in = 0;
    std::vector<std::jthread> openers;
    openers.reserve(4);
    for (int i = 0; i < 4; ++i) {
      openers.emplace_back([&] {
        if (sessions.open_link(link->secret)) ++in;
      });
    }
    openers.clear();
    EXPECT_EQ(in, 1);
  }
}

}  // namespace
}  // namespace helio::auth
