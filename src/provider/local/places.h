#pragma once
// Where the things of a node lie: names, addresses and ports that follow from (home, slot, index).

#include "base/error.h"
#include "model/home.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

namespace helio::provider::local {

/// Ray's longest socket name fits below a temp dir of this many bytes.
inline constexpr std::size_t kMaxTempDir = 38;

class Places {
 public:
  /// `session_root` empty: /tmp/hs<uid>.
  Places(model::Home home, std::string session_root);

  /// 16 hex digits that tell this data folder from others on the host.
  [[nodiscard]] const std::string& home_id() const { return home_id_; }
  /// <session root>/<4 hex digits>: all temp dirs of this home.
  [[nodiscard]] const std::string& session_folder() const { return session_folder_; }
  /// Makes the session folder, closed to other users. Errors: precondition_failed when somebody else owns it.
  [[nodiscard]] Result<void> prepare() const;

  [[nodiscard]] std::string temp_dir(std::int32_t slot, std::int32_t index) const;
  [[nodiscard]] std::string work_dir(std::int32_t slot, std::int32_t index) const;
  /// Errors: resource_exhausted for more nodes than one loopback block has addresses.
  [[nodiscard]] Result<std::string> address(std::int32_t slot, std::int32_t index) const;
  [[nodiscard]] std::string cgroup_parent() const { return "heliostat-" + home_id_.substr(0, 8); }
  [[nodiscard]] static std::string cgroup_name(std::int32_t slot, std::int32_t index);
  /// Where to start looking for ports, so that two daemons of one host rarely look at the same block.
  [[nodiscard]] std::int32_t port_hint(std::int32_t slot, std::int32_t index) const;
  [[nodiscard]] const model::Home& home() const { return home_; }
  [[nodiscard]] std::string agents() const { return home_.root + "/agents"; }

 private:
  model::Home home_;
  std::string session_root_;
  bool own_root_ = false;  ///< nobody named another one
  std::string home_id_;
  std::string session_folder_;
  std::uint32_t number_ = 0;  ///< of this home, from its hash
};

inline constexpr std::int32_t kPortBlock = 100;
/// Lower end of the kernel's range for outgoing connections; 32768 when it cannot be read.
std::int32_t ephemeral_ports_from();
/// True when nothing on this host listens on any port that a node with this base uses.
bool ports_are_free(std::int32_t base);
/// First block in [10000, ephemeral) outside 23000..23999 and `taken` that `is_free`, looked for from the `hint`th on, around.
/// Errors: resource_exhausted.
Result<std::int32_t> find_ports(std::int32_t ephemeral_from, std::int32_t hint, const std::set<std::int32_t>& taken,
                                const std::function<bool(std::int32_t)>& is_free);

}  // namespace helio::provider::local
