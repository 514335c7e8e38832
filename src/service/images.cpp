#include "model/ray_version.h"
#include "service/catalog.h"
#include "service/fields.h"
#include "service/live.h"
#include "service/runtime_env.h"

#include <unistd.h>

namespace helio::service {
namespace {

/// Prints one JSON line. The import of optional_deps fails where Ray was installed without its `default` extra, which the Jobs API needs.
constexpr const char* kProbe = R"(
import json, platform
out = {"python": platform.python_version()}
try:
    import ray
    out["ray"] = ray.__version__
    out["commit"] = getattr(ray, "__commit__", "")
    try:
        import ray.dashboard.optional_deps
    except ImportError as e:
        out["extra"] = str(e)
except ImportError as e:
    out["missing"] = str(e)
print("helio-probe:" + json.dumps(out))
)";

std::string text_in(const json::Object& object, std::string_view key) {
  const json::Value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// The probe's line among whatever site hooks of the prefix print.
Result<json::Object> facts_in(const std::string& output, const std::string& prefix) {
  constexpr std::string_view kMark = "helio-probe:";
  const auto at = output.rfind(kMark);
  if (at == std::string::npos) return wrong("$.prefix", "{}/bin/python did not answer as a Python does", prefix);
  const auto end = output.find('\n', at);
  auto value = json::parse(output.substr(at + kMark.size(), end == std::string::npos ? end : end - at - kMark.size()));
  if (!value || !value->is_object()) return wrong("$.prefix", "{}/bin/python did not answer as a Python does", prefix);
  return std::move(value->get_object());
}

Result<void> check_versions(model::Image& image, const json::Object& facts) {
  image.python_version = text_in(facts, "python");
  image.ray_version = text_in(facts, "ray");
  image.ray_commit = text_in(facts, "commit");
  if (image.ray_version.empty()) {
    return wrong("$.prefix", "Ray cannot be imported there ({}); install it: {}/bin/python -m pip install 'ray[default]'",
                 text_in(facts, "missing"), image.prefix);
  }
  if (!version_at_least(image.ray_version, "2.6.0")) {
    return fail(Error(ErrorCode::precondition_failed,
                      fmt::format("Ray {} is too old: 2.6 is the first whose Jobs API heliostat can drive", image.ray_version))
                    .at("$.prefix")
                    .with("ray_version", image.ray_version));
  }
  if (const std::string extra = text_in(facts, "extra"); !extra.empty()) {
    return wrong("$.prefix", "Ray {} was installed without its Jobs API ({}); install it: {}/bin/python -m pip install 'ray[default]=={}'",
                 image.ray_version, extra, image.prefix, image.ray_version);
  }
  if (!model::ray_has_tokens(image.ray_version) && !image.allow_no_token) {
    return fail(
        Error(ErrorCode::precondition_failed,
              fmt::format("Ray {} knows no tokens, so every user of this host could run code in its clusters; allow it by name with "
                          "allow_no_token (helio image add --allow-no-token) where that is acceptable, or use Ray 2.52 or newer",
                          image.ray_version))
            .at("$.allow_no_token")
            .with("ray_version", image.ray_version));
  }
  return {};
}

store::Event event_of(const Caller& caller, Timestamp now, std::string type, std::string message) {
  store::Event event;
  event.at = now;
  event.actor = caller.principal;
  event.type = std::move(type);
  event.message = std::move(message);
  return event;
}

}  // namespace

Images::Images(store::Store& store, const Clock& clock, PythonProbe probe) : store_(store), clock_(clock), probe_(std::move(probe)) {}

Result<model::Image> Images::add(const Caller& caller, model::Image image) {
  if (image.name.empty()) return wrong("$.name", "an image needs a name");
  HELIO_CHECK_OK(check_label_value(image.name.value, "$.name"));
  HELIO_TRY(prefix, normal_folder(image.prefix, "$.prefix"));
  image.prefix = std::move(prefix);
  for (const char* program : {"/bin/python", "/bin/ray"}) {
    const std::string path = image.prefix + program;
    if (::access(path.c_str(), X_OK) != 0)
      return wrong(
          "$.prefix",
          "there is no {}; expected a Python prefix that has Ray: a folder with bin/python and bin/ray, such as a virtual environment",
          path);
  }
  const auto output = probe_(image.prefix + "/bin/python", kProbe);
  if (!output) return wrong("$.prefix", "{}/bin/python cannot be run: {}", image.prefix, output.error().message());
  HELIO_TRY(facts, facts_in(*output, image.prefix));
  HELIO_CHECK_OK(check_versions(image, facts));

  HELIO_CHECK_OK(store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(former, tx.find<model::Image>(image.name.value));
    if (former && former->prefix != image.prefix) {
      return fail(
          Error(ErrorCode::already_exists, fmt::format("the name '{}' is taken by the image at {}; remove it first, or take another name",
                                                       image.name.value, former->prefix))
              .at("$.name"));
    }
    image.revision = former ? former->revision : 0;
    image.created = former ? former->created : clock_.now();
    return tx.put(image, event_of(caller, clock_.now(), former ? "image.changed" : "image.added",
                                  fmt::format("image '{}': Python {}, Ray {}", image.name.value, image.python_version, image.ray_version)));
  }));
  return image;
}

Result<std::vector<model::Image>> Images::list() {
  HELIO_TRY(page, store::list<model::Image>(store_));
  return std::move(page.items);
}

Result<model::Image> Images::get(const std::string& name) { return store::get<model::Image>(store_, name); }

Result<void> Images::remove(const Caller& caller, const std::string& name) {
  return store_.write([&](store::WriteTx& tx) -> Result<void> {
    HELIO_TRY(image, tx.get<model::Image>(name));
    HELIO_TRY(users, live_jobs(tx, [&](const model::JobSpec& spec) { return spec.image == name; }));
    if (!users.empty()) return fail(ErrorCode::precondition_failed, "jobs that have not ended use image '{}': {}", name, listed(users));
    return tx.remove<model::Image>(image.name.value, event_of(caller, clock_.now(), "image.removed", fmt::format("image '{}'", name)));
  });
}

}  // namespace helio::service
