#pragma once
#include "service/resolve.h"

namespace helio::service {

/// A pool of one host (8 CPUs, 16 GiB, no GPU) with the default flavors and images of several Ray versions.
inline Catalog catalog_for_test() {
  Catalog catalog;
  const auto flavor = [&](const char* name, std::int64_t milli, Bytes memory) {
    model::Flavor out;
    out.name = FlavorId(name);
    out.resources = {MilliCpu{milli}, memory, Bytes{memory.n / 100 * 35}, 0};
    catalog.flavors[name] = out;
  };
  flavor("head", 500, 2_GiB);
  flavor("small", 1000, 2_GiB);
  flavor("medium", 2000, 4_GiB);
  flavor("tiny", 250, 1_GiB);
  for (const auto& [name, version] : {std::pair{"default", "2.60.0"}, std::pair{"old", "2.9.3"}}) {
    model::Image image;
    image.name = ImageId(name);
    image.prefix = "/opt/ray";
    image.ray_version = version;
    catalog.images[name] = image;
  }
  sched::HostView host;
  host.id = HostId("local");
  host.capacity = {MilliCpu{8000}, 16_GiB, 8_GiB, 0};
  catalog.hosts = {host};
  catalog.settings.pool.mounts = {"/data/"};
  catalog.has_package = [](std::string_view digest) { return digest.starts_with("aaaa"); };
  return catalog;
}

}  // namespace helio::service
