#pragma once
#include <string>

namespace helio::model {

/// Where things lie below one data folder ($HELIOSTAT_HOME, default ~/.heliostat). Pure names; nobody else builds these paths.
struct Home {
  std::string root;
  [[nodiscard]] std::string config() const { return root + "/config.yaml"; }
  [[nodiscard]] std::string admin_token() const { return root + "/admin.token"; }  ///< 0600
  [[nodiscard]] std::string daemon_file() const { return root + "/daemon.json"; }  ///< {pid, start_ticks, boot_id, url, version}
  [[nodiscard]] std::string daemon_log() const { return root + "/daemon.log"; }
  [[nodiscard]] std::string lock() const { return root + "/lock"; }  ///< flock of the running daemon
  [[nodiscard]] std::string store() const { return root + "/store.db"; }
  [[nodiscard]] std::string sealing_key() const { return root + "/sealing.key"; }  ///< 0600
  [[nodiscard]] std::string logs() const { return root + "/logs"; }
  [[nodiscard]] std::string packages() const { return root + "/packages"; }  ///< <sha256>.zip
  [[nodiscard]] std::string spool() const { return root + "/spool"; }
  [[nodiscard]] std::string nodes() const { return root + "/nodes"; }  ///< <node id>/: records of the local provider
  [[nodiscard]] std::string images() const { return root + "/images"; }
  [[nodiscard]] std::string job(const std::string& id) const { return root + "/jobs/" + id; }
  [[nodiscard]] std::string job_outputs(const std::string& id) const { return job(id) + "/outputs"; }
  [[nodiscard]] std::string job_checkpoints(const std::string& id) const { return job(id) + "/checkpoints"; }
  [[nodiscard]] std::string package(const std::string& sha256) const { return packages() + "/" + sha256 + ".zip"; }
};

}  // namespace helio::model
