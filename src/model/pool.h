#pragma once
// What clusters are made of: flavors (shapes), images (software), hosts (machines), and the pool's own settings.

#include "base/ids.h"
#include "base/json/json.h"
#include "base/units.h"
#include "model/states.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace helio::model {

/// What a node takes from its host.
struct Resources {
  MilliCpu cpu;
  Bytes memory;
  Bytes shm;  ///< of /dev/shm; counts inside memory
  std::int32_t gpus = 0;

  friend bool operator==(const Resources&, const Resources&) = default;
  [[nodiscard]] bool fits_in(const Resources& free) const {
    return cpu <= free.cpu && memory <= free.memory && shm <= free.shm && gpus <= free.gpus;
  }
  Resources& operator+=(const Resources& o) {
    cpu += o.cpu;
    memory += o.memory;
    shm += o.shm;
    gpus += o.gpus;
    return *this;
  }
  Resources& operator-=(const Resources& o) {
    cpu.n -= o.cpu.n;
    memory.n -= o.memory.n;
    shm.n -= o.shm.n;
    gpus -= o.gpus;
    return *this;
  }
};

struct Flavor {
  static constexpr std::array kRequired{std::string_view("name"), std::string_view("resources")};
  FlavorId name;
  Resources resources;
  std::string gpu_model;      ///< empty: any
  bool virtual_gpus = false;  ///< its GPUs are counted but do not exist; said wherever the flavor is shown
  std::string about;
  std::int64_t revision = 0;
  Timestamp created;
};

/// A registered Python prefix (local backend). Ray >= 2.6.
struct Image {
  static constexpr std::array kRequired{std::string_view("name"), std::string_view("prefix")};
  ImageId name;
  std::string prefix;          ///< absolute; holds bin/python and bin/ray
  std::string python_version;  ///< "3.11.7"
  std::string ray_version;     ///< "2.60.0"
  std::string ray_commit;
  bool allow_no_token = false;  ///< an administrator accepts that Ray before 2.52 trusts every caller on this host
  std::int64_t revision = 0;
  Timestamp created;
};

struct Gpu {
  std::int32_t index = 0;
  std::string model;
  Bytes memory;
  bool is_virtual = false;
};

struct Host {
  HostId id;
  HostState state = HostState::ready;
  std::string reason;
  Resources capacity;  ///< what may be placed: physical times the declared over-commit factor for CPU
  MilliCpu physical_cpu;
  double cpu_overcommit = 1;
  std::vector<Gpu> gpus;
  std::string isolation;  ///< "namespaces", "user namespaces" or "process groups (…what is lost…)"
  std::string limits;     ///< "cgroup v2", "cgroup v1" or "watching (…why…)"
  std::string address;
  std::int64_t revision = 0;
  Timestamp created;
};

}  // namespace helio::model

HELIO_JSON(helio::model::Resources)
HELIO_JSON(helio::model::Flavor)
HELIO_JSON(helio::model::Image)
HELIO_JSON(helio::model::Gpu)
HELIO_JSON(helio::model::Host)
