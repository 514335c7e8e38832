#include "auth/authorise.h"
#include "auth/login_limiter.h"
#include "auth/sealer.h"
#include "auth/secret_file.h"
#include "auth/tokens.h"
#include "base/hash.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

namespace helio::auth {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path().string() + "/helio_auth.XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

mode_t mode_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

TEST(Sealer, what_is_sealed_opens_after_a_restart) {
  const Folder folder;
  std::string sealed;
  {
    const auto sealer = SecretBoxSealer::open_file(folder.file("key"));
    ASSERT_TRUE(sealer) << sealer.error().text();
    sealed = (*sealer)->seal("pass word");
    EXPECT_EQ(*(*sealer)->open(sealed), "pass word");
    EXPECT_EQ(*(*sealer)->open((*sealer)->seal("")), "");
    EXPECT_NE((*sealer)->seal("pass word"), sealed) << "the same value twice must not be seen to be the same";
    EXPECT_EQ(sealed.find("pass"), std::string::npos);
  }
  EXPECT_EQ(mode_of(folder.file("key")), 0600U);
  const auto again = SecretBoxSealer::open_file(folder.file("key"));
  ASSERT_TRUE(again);
  EXPECT_EQ(*(*again)->open(sealed), "pass word");
}

TEST(Sealer, a_changed_or_foreign_value_is_refused) {
  const Folder folder;
  const auto sealer = SecretBoxSealer::open_file(folder.file("a"));
  const auto other = SecretBoxSealer::open_file(folder.file("b"));
  const std::string sealed = (*sealer)->seal("secret");
  EXPECT_EQ((*other)->open(sealed).error().code(), ErrorCode::internal);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE((*sealer)->open(changed)) << i;
    EXPECT_FALSE((*sealer)->open(sealed.substr(0, i))) << i;
  }
}

TEST(Sealer, a_key_that_others_may_read_or_that_is_broken_is_refused_and_kept) {
  const Folder folder;
  const std::string path = folder.file("key");
  ASSERT_TRUE(SecretBoxSealer::open_file(path));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto open = SecretBoxSealer::open_file(path);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code(), ErrorCode::precondition_failed);
  EXPECT_NE(open.error().message().find("chmod 600"), std::string::npos);

  ASSERT_TRUE(write_secret_file(path, "not a key\n"));
  const auto broken = SecretBoxSealer::open_file(path);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code(), ErrorCode::precondition_failed);
  EXPECT_EQ(**read_secret_file(path), "not a key\n") << "a backup may repair it; a new key would not";
}

TEST(SecretFile, links_folders_and_pipes_are_refused) {
  const Folder folder;
  EXPECT_FALSE(read_secret_file(folder.file("absent"))->has_value());
  ASSERT_TRUE(write_secret_file(folder.file("real"), "x"));
  fs::create_symlink(folder.file("real"), folder.file("link"));
  EXPECT_FALSE(read_secret_file(folder.file("link")));
  EXPECT_FALSE(read_secret_file(folder.file("")));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_secret_file(folder.file("pipe"))) << "and nobody waits for a writer";
  ASSERT_TRUE(write_secret_file(folder.file("real"), std::string(5000, 'x')));
  EXPECT_FALSE(read_secret_file(folder.file("real")));
  EXPECT_FALSE(write_secret_file(folder.file("no/such/folder"), "x"));
}

TEST(LoginLimiter, a_burst_then_a_slow_stream) {
  ManualClock clock;
  LoginLimiter limiter(clock);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(limiter.failed("1.2.3.4")) << i;
  const auto wait = limiter.failed("1.2.3.4");
  ASSERT_TRUE(wait);
  EXPECT_EQ(*wait, Duration(6s));
  EXPECT_FALSE(limiter.failed("5.6.7.8")) << "each peer has its own";
  clock.advance(*wait);
  EXPECT_FALSE(limiter.failed("1.2.3.4"));
  EXPECT_TRUE(limiter.failed("1.2.3.4"));
  clock.advance(1h);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(limiter.failed("1.2.3.4")) << i;
}

TEST(LoginLimiter, memory_is_bounded_and_an_attacker_stays_known) {
  ManualClock clock;
  LoginLimiter limiter(clock);
  for (int i = 0; i < 11; ++i) limiter.failed("attacker");
  for (int i = 0; i < 20'000; ++i) {
    limiter.failed("peer" + std::to_string(i));
    if (i % 1000 == 0) EXPECT_TRUE(limiter.failed("attacker")) << "one that goes on is not forgotten";
  }
  EXPECT_EQ(limiter.peers(), 4096U);
}

/// Counts reads, to show what the hot path does.
class CountingStore final : public store::Store {
 public:
  explicit CountingStore(store::Store& inner) : inner_(inner) {}
  Result<void> write(WriteFn fn) override { return inner_.write(std::move(fn)); }
  Result<void> write(const store::Lease& lease, WriteFn fn) override { return inner_.write(lease, std::move(fn)); }
  Result<void> read(ReadFn fn) override {
    ++reads;
    return broken ? fail(ErrorCode::unavailable, "the disk is gone") : inner_.read(std::move(fn));
  }
  Result<store::Lease> take_lease(std::string_view holder) override { return inner_.take_lease(holder); }
  [[nodiscard]] std::int64_t revision() const override { return inner_.revision(); }
  [[nodiscard]] std::int64_t changed(std::string_view kind) const override { return inner_.changed(kind); }
  std::unique_ptr<Subscription> subscribe(Listener listener) override { return inner_.subscribe(std::move(listener)); }

  std::atomic<int> reads = 0;
  std::atomic<bool> broken = false;

 private:
  store::Store& inner_;
};

class TokensTest : public testing::Test {
 protected:
  TokensTest() : inner(std::move(*store::open_sqlite({folder.file("db"), clock, false, nullptr}))), db(*inner), tokens(db, clock, rng) {}

  [[nodiscard]] ErrorCode code_of(std::string_view bearer) {
    const auto found = tokens.authenticate(bearer, "peer");
    EXPECT_FALSE(found);
    return found ? ErrorCode::internal : found.error().code();
  }
  void touch_store() {
    model::Flavor flavor;
    flavor.name = FlavorId("f" + std::to_string(inner->revision()));
    ASSERT_TRUE(inner->write([&](store::WriteTx& tx) { return tx.put(flavor, {}); }));
  }
  [[nodiscard]] std::string admin_secret() const {
    std::string line;
    std::ifstream in(folder.file("admin.token"));
    std::getline(in, line);
    return line;
  }

  Folder folder;
  ManualClock clock;
  SystemRng rng;
  std::unique_ptr<store::Store> inner;
  CountingStore db;
  Tokens tokens;
};

TEST_F(TokensTest, the_first_start_makes_an_admin_token) {
  ASSERT_TRUE(tokens.ensure_admin(folder.file("admin.token")));
  EXPECT_EQ(mode_of(folder.file("admin.token")), 0600U);
  const std::string secret = admin_secret();
  const auto found = tokens.authenticate(secret, "peer");
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->principal, "admin");
  EXPECT_EQ(found->role, model::AccessRole::admin);

  ASSERT_TRUE(tokens.ensure_admin(folder.file("admin.token")));
  EXPECT_EQ(admin_secret(), secret) << "the next start leaves it alone";
  std::ifstream file(folder.file("db"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(bytes.find(secret), std::string::npos) << "only its hash is stored";
}

TEST_F(TokensTest, a_lost_or_foreign_token_file_is_made_anew) {
  ASSERT_TRUE(tokens.ensure_admin(folder.file("admin.token")));
  const std::string former = admin_secret();
  fs::remove(folder.file("admin.token"));
  ASSERT_TRUE(tokens.ensure_admin(folder.file("admin.token")));
  EXPECT_NE(admin_secret(), former);
  EXPECT_EQ(code_of(former), ErrorCode::unauthenticated) << "there is one admin token";
  EXPECT_TRUE(tokens.authenticate(admin_secret(), "peer"));
  ASSERT_TRUE(write_secret_file(folder.file("admin.token"), "hst_of_another_store\n"));
  ASSERT_TRUE(tokens.ensure_admin(folder.file("admin.token")));
  EXPECT_TRUE(tokens.authenticate(admin_secret(), "peer"));
}

TEST_F(TokensTest, wrong_tokens_are_refused) {
  ASSERT_TRUE(tokens.ensure_admin(folder.file("admin.token")));
  const std::string secret = admin_secret();
  EXPECT_EQ(code_of(""), ErrorCode::unauthenticated);
  EXPECT_EQ(code_of("x"), ErrorCode::unauthenticated);
  EXPECT_EQ(code_of(secret + "x"), ErrorCode::unauthenticated);
  EXPECT_EQ(code_of(secret.substr(1)), ErrorCode::unauthenticated);
  EXPECT_EQ(code_of(sha256_hex(secret)), ErrorCode::unauthenticated) << "the stored hash is no token";
  EXPECT_EQ(code_of(std::string(1'000'000, 'x')), ErrorCode::unauthenticated);
}

TEST_F(TokensTest, too_many_wrong_ones_are_told_to_wait_and_right_ones_still_pass) {
  const auto made = tokens.create("admin", "ci", "ci", model::AccessRole::developer, std::nullopt);
  ASSERT_TRUE(made);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(code_of("wrong"), ErrorCode::unauthenticated);
  const auto limited = tokens.authenticate("wrong", "peer");
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code(), ErrorCode::resource_exhausted);
  ASSERT_FALSE(limited.error().args().empty());
  EXPECT_EQ(limited.error().args()[0].first, "retry_after");
  EXPECT_TRUE(tokens.authenticate(made->secret, "peer"));
}

TEST_F(TokensTest, a_revoked_token_is_refused_at_once_and_others_live_on) {
  const auto kept = tokens.create("admin", "kept", "ada", model::AccessRole::developer, std::nullopt);
  const auto gone = tokens.create("admin", "gone", "bob", model::AccessRole::viewer, std::nullopt);
  ASSERT_TRUE(kept && gone);
  EXPECT_EQ(tokens.authenticate(gone->secret, "peer")->principal, "bob");
  ASSERT_TRUE(tokens.revoke("admin", gone->token.id));
  EXPECT_EQ(code_of(gone->secret), ErrorCode::unauthenticated);
  EXPECT_EQ(tokens.authenticate(kept->secret, "peer")->role, model::AccessRole::developer);
  EXPECT_EQ(tokens.revoke("admin", gone->token.id).error().code(), ErrorCode::not_found);
  EXPECT_EQ(tokens.list()->size(), 1U);
}

TEST_F(TokensTest, a_revocation_by_somebody_else_is_seen_at_once) {
  const auto made = tokens.create("admin", "t", "ada", model::AccessRole::op, std::nullopt);
  ASSERT_TRUE(tokens.authenticate(made->secret, "peer"));
  ASSERT_TRUE(inner->write([&](store::WriteTx& tx) { return tx.remove<model::Token>(made->token.id.value, {}); }));
  EXPECT_FALSE(tokens.authenticate(made->secret, "peer"));
}

TEST_F(TokensTest, tokens_expire) {
  const auto made = tokens.create("admin", "t", "ada", model::AccessRole::op, clock.now() + 1h);
  ASSERT_TRUE(made);
  EXPECT_TRUE(tokens.authenticate(made->secret, "peer"));
  clock.advance(1h);
  EXPECT_EQ(code_of(made->secret), ErrorCode::unauthenticated);
  EXPECT_EQ(tokens.create("admin", "t", "ada", model::AccessRole::op, clock.now()).error().path(), "$.expires");
  EXPECT_EQ(tokens.create("admin", "", "ada", model::AccessRole::op, {}).error().path(), "$.name");
  EXPECT_EQ(tokens.create("admin", "t", "", model::AccessRole::op, {}).error().path(), "$.principal");
  EXPECT_EQ(tokens.create("admin", "two words", "ada", model::AccessRole::op, {}).error().path(), "$.name");
  EXPECT_EQ(tokens.create("admin", std::string(64, 'x'), "ada", model::AccessRole::op, {}).error().path(), "$.name");
  EXPECT_TRUE(tokens.create("admin", std::string(63, 'x'), "ada@lab.example", model::AccessRole::op, {}));
  for (const char* part : {"agent", "control", "provider", "system"}) {
    EXPECT_EQ(tokens.create("admin", "t", part, model::AccessRole::op, {}).error().path(), "$.principal")
        << "events would not tell who did it";
  }
}

TEST_F(TokensTest, one_for_some_workspaces_knows_of_no_other_and_acts_on_no_pool) {
  using enum model::AccessRole;
  const auto made = tokens.create("admin", "t", "ada", developer, {}, {{"b", "a", "b"}});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->token.workspaces, (std::vector<std::string>{"a", "b"}));
  const auto found = tokens.authenticate(made->secret, "peer");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->scope.holds("a"));
  EXPECT_FALSE(found->scope.holds("c"));
  EXPECT_FALSE(found->scope.holds("")) << "what is of no workspace";
  EXPECT_FALSE(tokens.known(made->secret)->scope.is_all());
  EXPECT_EQ(tokens.create("admin", "t", "ada", developer, {}, {{"a", "b c"}}).error().path(), "$.workspaces[1]");
  for (const model::AccessRole role : {op, admin}) {
    const auto refused = tokens.create("admin", "t", "ada", role, {}, {{"a"}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().path(), "$.workspaces");
    EXPECT_NE(refused.error().message().find("viewer or developer"), std::string::npos);
  }
  model::Scope many;
  for (int i = 0; i < 65; ++i) many.workspaces.push_back("w" + std::to_string(i));
  EXPECT_EQ(tokens.create("admin", "t", "ada", developer, {}, many).error().path(), "$.workspaces");
}

TEST_F(TokensTest, one_of_an_older_version_knows_of_all) {
  store::Row row;
  row.kind = model::KindOf<model::Token>::name;
  row.id = "t-old";
  row.doc = R"({"id":"t-old","name":"old","principal":"ada","role":"viewer","hash":")" + sha256_hex("secret") +
            R"(","created":"2026-01-31T12:00:00.000000Z"})";
  ASSERT_TRUE(inner->write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_CHECK_OK(tx.put_row(row, {}));
    return {};
  }));
  const auto found = tokens.authenticate("secret", "peer");
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_TRUE(found->scope.is_all());
  EXPECT_TRUE(found->scope.holds("anything"));
}

TEST_F(TokensTest, the_administrators_own_is_not_revoked) {
  const Folder folder;
  ASSERT_TRUE(tokens.ensure_admin(folder.file("admin.token")));
  EXPECT_EQ(tokens.revoke("admin", TokenId("admin")).error().code(), ErrorCode::precondition_failed);
  const std::string secret = read_secret_file(folder.file("admin.token"))->value();
  EXPECT_TRUE(tokens.authenticate(secret.substr(0, secret.find('\n')), "peer"));
}

TEST_F(TokensTest, the_hot_path_leaves_the_store_alone) {
  const auto made = tokens.create("admin", "t", "ada", model::AccessRole::op, std::nullopt);
  ASSERT_TRUE(tokens.authenticate(made->secret, "peer"));
  const int before = db.reads;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(tokens.authenticate(made->secret, "peer"));
  EXPECT_EQ(db.reads.load(), before);
  touch_store();  // a commit that has nothing to do with tokens: one look at the change feed at most
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(tokens.authenticate(made->secret, "peer"));
  EXPECT_LE(db.reads.load(), before + 1);
}

TEST_F(TokensTest, a_store_that_cannot_be_read_lets_nobody_in) {
  const auto made = tokens.create("admin", "t", "ada", model::AccessRole::op, std::nullopt);
  db.broken = true;
  EXPECT_EQ(code_of(made->secret), ErrorCode::unavailable);
  db.broken = false;
  EXPECT_TRUE(tokens.authenticate(made->secret, "peer"));
}

TEST_F(TokensTest, many_threads_agree) {
  const auto made = tokens.create("admin", "t", "ada", model::AccessRole::op, std::nullopt);
  std::atomic<int> accepted = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) accepted += tokens.authenticate(made->secret, "peer") ? 1 : 0;
    });
  }
  for (int i = 0; i < 20; ++i) touch_store();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted.load(), 800);
}

TEST(Authorise, every_pair_of_role_verb_and_kind) {
  // By kind and verb: least role for own and for others' things. What is not here is refused to everybody.
  const std::map<std::string, std::pair<std::string, std::string>> expected{
      {"see job", {"viewer", "viewer"}},           {"create job", {"developer", "developer"}},
      {"stop job", {"developer", "op"}},           {"remove job", {"developer", "op"}},
      {"exec job", {"developer", "op"}},           {"change job", {"op", "op"}},
      {"see log", {"viewer", "viewer"}},           {"see event", {"viewer", "viewer"}},
      {"see attempt", {"viewer", "viewer"}},       {"see node", {"viewer", "viewer"}},
      {"see package", {"developer", "developer"}}, {"create package", {"developer", "developer"}},
      {"see flavor", {"viewer", "viewer"}},        {"create flavor", {"admin", "admin"}},
      {"change flavor", {"admin", "admin"}},       {"remove flavor", {"admin", "admin"}},
      {"see image", {"viewer", "viewer"}},         {"create image", {"admin", "admin"}},
      {"change image", {"admin", "admin"}},        {"remove image", {"admin", "admin"}},
      {"see host", {"viewer", "viewer"}},          {"change host", {"op", "op"}},
      {"see token", {"admin", "admin"}},           {"create token", {"admin", "admin"}},
      {"remove token", {"admin", "admin"}},        {"see settings", {"op", "op"}},
      {"change settings", {"admin", "admin"}},
  };
  std::set<std::string> seen;
  for (int v = 0; v <= static_cast<int>(Verb::exec); ++v) {
    for (int k = 0; k <= static_cast<int>(Kind::settings); ++k) {
      const auto verb = static_cast<Verb>(v);
      const auto kind = static_cast<Kind>(k);
      const std::string name = fmt::format("{} {}", to_string(verb), to_string(kind));
      const auto row = expected.find(name);
      if (row != expected.end()) seen.insert(name);
      for (const auto role : {model::AccessRole::viewer, model::AccessRole::developer, model::AccessRole::op, model::AccessRole::admin}) {
        for (const Ownership ownership : {Ownership::own, Ownership::others}) {
          bool wanted = false;
          if (row != expected.end()) {
            const std::string& least = ownership == Ownership::own ? row->second.first : row->second.second;
            wanted = role >= *json::enum_from<model::AccessRole>(least);
          }
          EXPECT_EQ(may(role, verb, kind, ownership), wanted) << json::enum_name(role) << ": " << name;
          const auto result = authorise(role, verb, kind, ownership);
          EXPECT_EQ(result.has_value(), wanted);
          if (!result) EXPECT_EQ(result.error().code(), ErrorCode::permission_denied);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), expected.size());
  EXPECT_EQ(rules().size(), expected.size());
}

}  // namespace
}  // namespace helio::auth
