#pragma once
// What an administrator may set: <home>/config.yaml, unknown fields refused. Every default is a working one.

#include "base/json/json.h"
#include "base/units.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helio::model {

struct PoolSettings {
  double cpu_overcommit = 4;      ///< pool CPUs = cores * this; said in `helio hosts`
  double memory_share = 0.8;      ///< of physical memory, for nodes
  std::int32_t virtual_gpus = 0;  ///< counted, labelled as virtual, do not exist
  std::string head_flavor = "head";
  std::string worker_flavor = "small";
  std::vector<std::string> mounts;          ///< host folders that jobs may mount (and folders below)
  Bytes node_disk{0};                       ///< default limit of a node's folder; 0 = 10 GiB
  std::optional<std::string> session_root;  ///< default /tmp/hs<uid>; at most 12 bytes
};

/// PEM files, read again when they change.
struct TlsSettings {
  static constexpr std::array kRequired{std::string_view("certificate"), std::string_view("key")};
  std::string certificate;  ///< with those that lead to its root
  std::string key;
};

struct ServerSettings {
  std::string address = "127.0.0.1";  ///< another address needs TLS
  std::int32_t port = 0;              ///< 0: any free one, kept in <home>/daemon.json and used again
  std::optional<TlsSettings> tls;     ///< on address and port; agents and this home's CLI use a plain port of loopback beside it
  Bytes package_limit{100LL << 20};
};

struct KeepSettings {
  Span logs{std::chrono::hours(24 * 30)};
  Span events{std::chrono::hours(24 * 30)};
  Bytes log_total{0};  ///< oldest ended jobs' logs go first; 0 = 20 GiB
};

/// What jobs get that come by Ray's own Jobs API and do not say what they need.
struct JobsApiSettings {
  std::int32_t workers = 0;  ///< beside the head; 0: the head does the work
  std::optional<std::string> worker_flavor;
  std::optional<std::string> head_flavor;
  std::string image = "default";
};

struct Settings {
  PoolSettings pool;
  ServerSettings server;
  KeepSettings keep;
  JobsApiSettings jobs_api;
};

}  // namespace helio::model

HELIO_JSON(helio::model::PoolSettings)
HELIO_JSON(helio::model::TlsSettings)
HELIO_JSON(helio::model::ServerSettings)
HELIO_JSON(helio::model::KeepSettings)
HELIO_JSON(helio::model::JobsApiSettings)
HELIO_JSON(helio::model::Settings)
