#include "service/catalog.h"

#include "service/world_for_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace helio::service {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    prefix = world.home.root + "/py";
    fs::create_directories(prefix + "/bin");
    for (const char* program : {"python", "ray"}) {
      std::ofstream(prefix + "/bin/" + program) << "#!/bin/sh\n";
      fs::permissions(prefix + "/bin/" + program, fs::perms::owner_all);
    }
  }
  [[nodiscard]] model::Image image(const std::string& name = "default") const {
    model::Image out;
    out.name = ImageId(name);
    out.prefix = prefix;
    return out;
  }
  void answer(const std::string& json) { output = "hook noise\nhelio-probe:" + json + "\n"; }

  World world;
  std::string prefix;
  Result<std::string> output = std::string();
  Images images{*world.db, world.clock, [this](const std::string& python, const std::string&) -> Result<std::string> {
                  EXPECT_EQ(python, prefix + "/bin/python");
                  return output;
                }};
};

TEST_F(ImagesTest, versions_are_recorded) {
  answer(R"({"python":"3.11.7","ray":"2.60.0","commit":"abc"})");
  const auto added = images.add(world.caller, image());
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_EQ(added->python_version, "3.11.7");
  EXPECT_EQ(added->ray_version, "2.60.0");
  EXPECT_EQ(images.get("default")->ray_commit, "abc");
  answer(R"({"python":"3.11.7","ray":"2.61.0","commit":"def"})");
  ASSERT_TRUE(images.add(world.caller, image())) << "the same prefix after an upgrade";
  EXPECT_EQ(images.list()->size(), 1U);
  EXPECT_EQ(images.get("default")->ray_version, "2.61.0");
}

TEST_F(ImagesTest, what_cannot_work_is_refused_with_its_reason) {
  const auto refused = [&](const model::Image& wanted) {
    const auto added = images.add(world.caller, wanted);
    return added ? "accepted" : added.error().text();
  };
  answer(R"({"python":"3.11.7","ray":"2.5.1"})");
  EXPECT_THAT(refused(image()), testing::AllOf(HasSubstr("precondition_failed at $.prefix"), HasSubstr("too old")));
  answer(R"({"python":"3.11.7","missing":"No module named 'ray'"})");
  EXPECT_THAT(refused(image()), testing::AllOf(HasSubstr("invalid_argument at $.prefix"), HasSubstr("pip install")));
  answer(R"({"python":"3.11.7","ray":"2.60.0","extra":"No module named 'aiohttp'"})");
  EXPECT_THAT(refused(image()), HasSubstr("ray[default]==2.60.0"));
  answer(R"({"python":"3.11.7","ray":"2.30.0"})");
  EXPECT_THAT(refused(image()), testing::AllOf(HasSubstr("precondition_failed at $.allow_no_token"), HasSubstr("no tokens")));
  model::Image allowed = image();
  allowed.allow_no_token = true;
  EXPECT_EQ(refused(allowed), "accepted");
  output = std::string("Segmentation fault");
  EXPECT_THAT(refused(image("x")), HasSubstr("did not answer"));
  output = fail(ErrorCode::deadline_exceeded, "no answer in 30s");
  EXPECT_THAT(refused(image("x")), HasSubstr("no answer in 30s"));
  model::Image wrong = image("x");
  wrong.prefix = "relative";
  EXPECT_THAT(refused(wrong), HasSubstr("absolute"));
  wrong.prefix = world.home.root;
  EXPECT_THAT(refused(wrong), HasSubstr("bin/python"));
  EXPECT_THAT(refused(image("a b")), HasSubstr("$.name"));
}

TEST_F(ImagesTest, a_name_is_not_taken_over_silently) {
  answer(R"({"python":"3.11.7","ray":"2.60.0"})");
  ASSERT_TRUE(images.add(world.caller, image()));
  fs::rename(prefix, prefix + "2");
  prefix += "2";
  const auto taken = images.add(world.caller, image());
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), ErrorCode::already_exists);
  ASSERT_TRUE(images.remove(world.caller, "default"));
  EXPECT_TRUE(images.add(world.caller, image()));
  EXPECT_EQ(images.remove(world.caller, "nope").error().code(), ErrorCode::not_found);
}

TEST_F(ImagesTest, one_that_a_job_uses_stays) {
  world.add_pool();
  const model::Job job = world.submit(World::spec());
  const auto refused = images.remove(world.caller, "default");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::precondition_failed);
  EXPECT_THAT(refused.error().message(), HasSubstr(job.id.value));
  world.force(job.id, model::JobState::succeeded);
  EXPECT_TRUE(images.remove(world.caller, "default"));
}

TEST(Flavors, defaults_are_made_once_and_left_alone) {
  World world;
  Flavors flavors(*world.db, world.clock, world.settings);
  ASSERT_TRUE(ensure_default_flavors(*world.db, world.clock, world.settings));
  auto small = store::get<model::Flavor>(*world.db, "small");
  ASSERT_TRUE(small);
  EXPECT_EQ(small->resources.cpu.n, 1000);
  EXPECT_EQ(small->resources.memory, 2_GiB);
  EXPECT_EQ(small->resources.shm.n, (2LL << 30) / 100 * 35);
  EXPECT_EQ(store::get<model::Flavor>(*world.db, "gpu").error().code(), ErrorCode::not_found);
  small->resources.cpu = MilliCpu{1500};
  ASSERT_TRUE(flavors.put(world.caller, *small));
  world.settings.pool.virtual_gpus = 2;
  ASSERT_TRUE(ensure_default_flavors(*world.db, world.clock, world.settings));
  EXPECT_EQ(store::get<model::Flavor>(*world.db, "small")->resources.cpu.n, 1500);
  EXPECT_TRUE(store::get<model::Flavor>(*world.db, "gpu")->virtual_gpus);
  EXPECT_EQ(flavors.list()->size(), 5U);
}

TEST(Flavors, wrong_ones_are_refused_with_the_path) {
  World world;
  Flavors flavors(*world.db, world.clock, world.settings);
  const auto path = [&](const char* text) {
    const auto flavor = json::parse_as<model::Flavor>(text);
    if (!flavor) return flavor.error().path();
    const auto put = flavors.put(world.caller, *flavor);
    return put ? std::string("accepted") : put.error().path();
  };
  EXPECT_EQ(path(R"({"name":"","resources":{"cpu":1,"memory":"2GiB"}})"), "$.name");
  EXPECT_EQ(path(R"({"name":"a/b","resources":{"cpu":1,"memory":"2GiB"}})"), "$.name");
  EXPECT_EQ(path(R"({"name":"a","resources":{"cpu":0,"memory":"2GiB"}})"), "$.resources.cpu");
  EXPECT_EQ(path(R"({"name":"a","resources":{"cpu":1,"memory":"100MiB"}})"), "$.resources.memory");
  EXPECT_EQ(path(R"({"name":"a","resources":{"cpu":1,"memory":"2GiB","shm":"3GiB"}})"), "$.resources.shm");
  EXPECT_EQ(path(R"({"name":"a","resources":{"cpu":1,"memory":"2GiB","gpus":-1}})"), "$.resources.gpus");
  EXPECT_EQ(path(R"({"name":"a","resources":{"cpu":1,"memory":"2GiB"},"gpu_model":"H"})"), "$.gpu_model");
  EXPECT_EQ(path(R"({"name":"a","resources":{"cpu":1,"memory":"2GiB"}})"), "accepted");
  EXPECT_GT(store::get<model::Flavor>(*world.db, "a")->resources.shm.n, 0);
  EXPECT_EQ(flavors.remove(world.caller, "b").error().code(), ErrorCode::not_found);
  ASSERT_TRUE(ensure_default_flavors(*world.db, world.clock, world.settings));
  for (const char* name : {"head", "small"}) {
    EXPECT_EQ(flavors.remove(world.caller, name).error().code(), ErrorCode::precondition_failed) << "jobs that name none need it";
  }
  EXPECT_TRUE(flavors.remove(world.caller, "medium"));
  EXPECT_TRUE(flavors.remove(world.caller, "a"));
}

}  // namespace
}  // namespace helio::service
