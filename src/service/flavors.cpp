#include "service/catalog.h"
#include "service/fields.h"
#include "service/live.h"

#include <algorithm>

namespace helio::service {
namespace {

/// Share of a node's memory that its /dev/shm holds: the object store's 30 % and room for what programs put there themselves.
constexpr std::int64_t kShmPercent = 35;

Bytes default_shm(Bytes memory) { return {memory.n / 100 * kShmPercent}; }

store::Event event_of(std::string_view actor, Timestamp now, std::string type, std::string message) {
  store::Event event;
  event.at = now;
  event.actor = actor;
  event.type = std::move(type);
  event.message = std::move(message);
  return event;
}

Result<void> check(model::Flavor& flavor) {
  if (flavor.name.empty()) return wrong("$.name", "a flavor needs a name");
  HELIO_CHECK_OK(check_label_value(flavor.name.value, "$.name"));
  model::Resources& r = flavor.resources;
  if (r.cpu < MilliCpu{100} || r.cpu > MilliCpu{4'096'000})
    return wrong("$.resources.cpu", "expected 0.1 to 4096 CPUs, got {}", format_cpu(r.cpu));
  if (r.memory < 512_MiB) return wrong("$.resources.memory", "a Ray node needs at least 512MiB, got {}", format_bytes(r.memory));
  if (r.gpus < 0 || r.gpus > 64) return wrong("$.resources.gpus", "expected 0 to 64 GPUs, got {}", r.gpus);
  if (r.shm.n == 0) r.shm = default_shm(r.memory);
  if (r.shm < 80_MiB || r.shm > r.memory) {
    return wrong("$.resources.shm", "expected 80MiB to the memory of the node ({}), got {}", format_bytes(r.memory), format_bytes(r.shm));
  }
  if (r.gpus == 0 && !flavor.gpu_model.empty()) return wrong("$.gpu_model", "the flavor has no GPU; set resources.gpus or leave this out");
  if (flavor.about.size() > 1000) return wrong("$.about", "at most 1000 bytes are allowed");
  return {};
}

}  // namespace

Result<model::Flavor> Flavors::put(const Caller& caller, model::Flavor flavor) {
  HELIO_CHECK_OK(check(flavor));
  HELIO_CHECK_OK(store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(former, tx.find<model::Flavor>(flavor.name.value));
    flavor.revision = former ? former->revision : 0;
    flavor.created = former ? former->created : clock_.now();
    return tx.put(flavor, event_of(caller.principal, clock_.now(), former ? "flavor.changed" : "flavor.created",
                                   fmt::format("flavor '{}'", flavor.name.value)));
  }));
  return flavor;
}

Result<std::vector<model::Flavor>> Flavors::list() {
  HELIO_TRY(page, store::list<model::Flavor>(store_));
  return std::move(page.items);
}

Result<void> Flavors::remove(const Caller& caller, const std::string& name) {
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(flavor, tx.get<model::Flavor>(name));
    for (const auto& [field, value] :
         {std::pair("head_flavor", settings_.pool.head_flavor), std::pair("worker_flavor", settings_.pool.worker_flavor)}) {
      if (value != name) continue;
      return fail(ErrorCode::precondition_failed, "flavor '{}' is pool.{} of the configuration, which jobs get that name none", name,
                  field);
    }
    HELIO_TRY(users, live_jobs(tx, [&](const model::JobSpec& spec) {
                return spec.head.flavor == name ||
                       std::ranges::any_of(spec.workers, [&](const auto& group) { return group.flavor == name; });
              }));
    if (!users.empty()) return fail(ErrorCode::precondition_failed, "jobs that have not ended use flavor '{}': {}", name, listed(users));
    return tx.remove<model::Flavor>(flavor.name.value,
                                    event_of(caller.principal, clock_.now(), "flavor.removed", fmt::format("flavor '{}'", name)));
  });
}

Result<void> ensure_default_flavors(store::Store& store, const Clock& clock, const model::Settings& settings) {
  const auto flavor = [](const char* name, std::int64_t milli, Bytes memory, std::int32_t gpus, const char* about) {
    model::Flavor out;
    out.name = FlavorId(name);
    out.resources = {MilliCpu{milli}, memory, default_shm(memory), gpus};
    out.about = about;
    return out;
  };
  std::vector<model::Flavor> wanted{flavor("head", 500, 2_GiB, 0, "for a head that only runs the driver"),
                                    flavor("small", 1000, 2_GiB, 0, "for trying things out"), flavor("medium", 2000, 4_GiB, 0, ""),
                                    flavor("large", 4000, 8_GiB, 0, "")};
  return store.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(hosts, tx.list<model::Host>());
    std::int32_t real = 0;
    for (const model::Host& host : hosts.items) {
      for (const model::Gpu& gpu : host.gpus) real += gpu.is_virtual ? 0 : 1;
    }
    if (real > 0 || settings.pool.virtual_gpus > 0) {
      wanted.push_back(flavor("gpu", 2000, 8_GiB, 1, real > 0 ? "one GPU" : "one virtual GPU: counted, but it does not exist"));
      wanted.back().virtual_gpus = real == 0;
    }
    for (model::Flavor& item : wanted) {
      HELIO_TRY(former, tx.find<model::Flavor>(item.name.value));
      if (former) continue;
      item.created = clock.now();
      HELIO_CHECK_OK(tx.put(item, event_of("system", clock.now(), "flavor.created", fmt::format("flavor '{}'", item.name.value))));
    }
    return {};
  });
}

}  // namespace helio::service
