#pragma once
// A store, logs and a data folder of their own for each test of a use case.

#include "auth/sealer.h"
#include "base/rng.h"
#include "model/home.h"
#include "service/jobs.h"
#include "store/logs/file_log_store.h"
#include "store/sql/sqlite/sqlite_store.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <memory>
#include <string>

namespace helio::service {

class World {
 public:
  explicit World(bool on_disk = false) {
    std::string folder = std::filesystem::temp_directory_path().string() + "/helio_service.XXXXXX";
    home.root = ::mkdtemp(folder.data());
    sealer = std::move(*auth::SecretBoxSealer::open_file(home.sealing_key()));
    store::SqliteOptions options{on_disk ? home.store() : ":memory:", clock, !on_disk, nullptr};
    db = std::move(*store::open_sqlite(options));
    logs = std::move(*store::open_file_logs(home.logs(), clock));
    jobs = std::make_unique<Jobs>(*db, *sealer, clock, rng, settings, home, logs.get());
  }
  ~World() {
    jobs.reset();
    logs.reset();
    db.reset();
    std::error_code ignored;
    std::filesystem::remove_all(home.root, ignored);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Stores a resource as the part of heliostat that owns it would.
  template <class T>
  void put(T& resource, std::string job = {}) {
    store::Event event;
    event.at = clock.now();
    event.actor = "test";
    event.type = "test.put";
    event.job = std::move(job);
    const auto done = db->write([&](store::WriteTx& tx) { return tx.put(resource, event); });
    ASSERT_TRUE(done) << done.error().text();
  }

  /// One host of 8 CPUs, the default flavors, an image.
  void add_pool() {
    ASSERT_TRUE(db);
    model::Host host;
    host.id = HostId("local");
    host.capacity = {MilliCpu{8000}, 16_GiB, 8_GiB, 0};
    put(host);
    for (const auto& [name, milli] : {std::pair{"head", 500}, std::pair{"small", 1000}, std::pair{"large", 4000}}) {
      model::Flavor flavor;
      flavor.name = FlavorId(name);
      flavor.resources = {MilliCpu{milli}, 2_GiB, 800_MiB, 0};
      put(flavor);
    }
    model::Image image;
    image.name = ImageId("default");
    image.prefix = "/opt/ray";
    image.ray_version = "2.60.0";
    put(image);
  }

  static model::JobSpec spec(std::int32_t workers = 0, const std::string& flavor = "small") {
    model::JobSpec out;
    out.entrypoint.argv = std::vector<std::string>{"python", "train.py"};
    if (workers > 0) out.workers.push_back({"workers", workers, flavor, {}, {}, std::nullopt});
    return out;
  }

  model::Job submit(const model::JobSpec& spec) {
    auto job = jobs->submit(caller, spec, {});
    EXPECT_TRUE(job) << job.error().text();
    return job.value_or(model::Job{});
  }

  /// Moves a job to a state, past its controller.
  void force(const JobId& id, model::JobState state) {
    auto job = jobs->get(id);
    ASSERT_TRUE(job);
    job->state = state;
    put(*job, id.value);
  }

  /// A running attempt of a job with a head node on the host.
  model::Attempt attempt_of(const model::Job& job, std::int32_t number = 1) {
    model::Attempt attempt;
    attempt.id = AttemptId(job.id.value + "-" + std::to_string(number));
    attempt.job = job.id;
    attempt.number = number;
    attempt.state = model::AttemptState::running;
    put(attempt, job.id.value);
    model::Cluster cluster;
    cluster.id = ClusterId("c-" + attempt.id.value);
    cluster.attempt = attempt.id;
    cluster.job = job.id;
    put(cluster, job.id.value);
    model::Node node;
    node.id = NodeId(attempt.id.value + "-h");
    node.cluster = cluster.id;
    node.attempt = attempt.id;
    node.job = job.id;
    node.host = HostId("local");
    node.placement.host = node.host;
    node.placement.resources = {MilliCpu{6000}, 4_GiB, 1_GiB, 0};
    put(node, job.id.value);
    return attempt;
  }

  ManualClock clock;
  SystemRng rng;
  model::Settings settings;
  model::Home home;
  Caller caller{"ada", model::AccessRole::developer};
  std::unique_ptr<auth::SecretBoxSealer> sealer;
  std::unique_ptr<store::Store> db;
  std::unique_ptr<store::LogStore> logs;
  std::unique_ptr<Jobs> jobs;
};

}  // namespace helio::service
