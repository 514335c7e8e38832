#pragma once
// Packs a folder for upload: always the same bytes for the same content, so that its digest finds the copy that is already there.

#include "base/error.h"
#include "base/units.h"
#include "cli/local_file.h"

#include <string>
#include <vector>

namespace helio::cli {

struct PackOptions {
  std::vector<std::string> excludes;  ///< .gitignore patterns, on top of .gitignore, .rayignore, .git and __pycache__
  std::string parent;                 ///< put in front of every path: py_modules are unpacked below their own name
  Bytes limit = 100_MiB;              ///< of the zip
};

struct Package {
  TempFile zip;
  std::string sha256;
  std::int64_t files = 0;
  Bytes size;      ///< of the zip
  Bytes unpacked;  ///< of its files
};

/// Errors: not_found; invalid_argument for a link that leads out of the folder, a name that no zip can carry, or nothing to pack;
/// resource_exhausted over the limit, naming the largest files.
Result<Package> pack_folder(const std::string& folder, const PackOptions& options);

/// A zip that exists: only its digest and size. Errors: not_found, invalid_argument (no zip), resource_exhausted.
struct ZipFile {
  std::string sha256;
  Bytes size;
};
Result<ZipFile> inspect_zip(const std::string& path, Bytes limit);

}  // namespace helio::cli
