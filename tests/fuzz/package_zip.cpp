// Uploaded packages: nothing that is refused stays behind, and nothing that is taken leads out of its folder.

#include "base/hash.h"
#include "check.h"
#include "model/home.h"
#include "model/settings.h"
#include "service/packages.h"

#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace {

namespace fs = std::filesystem;

struct Place {
  Place() {
    std::string folder = fs::temp_directory_path() / "helio_fuzz.XXXXXX";
    home.root = ::mkdtemp(folder.data());
    fs::create_directories(home.packages());
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(home.root, ignored);
  }
  helio::model::Home home;
  helio::model::Settings settings;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  static helio::service::Packages packages(place.home, place.settings);
  const std::string file = place.home.root + "/upload";
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto put = packages.put(helio::sha256_hex(bytes), file);
  const bool stored = !fs::is_empty(place.home.packages());
  FUZZ_CHECK(put.has_value() == stored);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place.home.packages())) fs::remove(entry.path(), ignored);
  fs::remove(file, ignored);
  return 0;
}
