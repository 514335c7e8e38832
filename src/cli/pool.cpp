// nodes, hosts, flavors, images.

#include "model/pool.h"
#include "cli/api_client.h"
#include "cli/context.h"
#include "cli/local_file.h"
#include "cli/spec_flags.h"
#include "cli/table.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

namespace helio::cli {
namespace {

constexpr std::size_t kTextWidth = 70;

/// A list route's items, printed by `rows` unless a document was asked for.
template <class T, class Rows>
Result<int> print_list(const Context& context, const std::string& target, Rows rows) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(items, api->list(target));
  if (context.output() != Output::table) {
    print_document(context, items);
    return 0;
  }
  HELIO_TRY(decoded, decode_items<T>(items));
  rows(decoded).print();
  return 0;
}

std::string gpus_of(const model::Resources& resources, bool is_virtual) {
  if (resources.gpus == 0) return "0";
  return fmt::format("{}{}", resources.gpus, is_virtual ? " virtual" : "");
}

Table node_table(const std::vector<model::Node>& nodes) {
  Table table({"NODE", "STATE", "FLAVOR", "HOST", "ADDRESS", "CPU", "MEMORY", "DOING"});
  for (const model::Node& node : nodes) {
    const auto& usage = node.status.usage;
    const std::string& doing = node.status.step.empty() || is_terminal(node.state) ? node.reason : node.status.step;
    table.row({node.id.value, std::string(json::enum_name(node.state)), node.placement.flavor, node.host.value, node.address,
               fmt::format("{}/{}", usage ? fmt::format("{:.1f}", usage->cpu) : "-", format_cpu(node.placement.resources.cpu)),
               fmt::format("{}/{}", usage ? format_bytes(usage->memory) : "-", format_bytes(node.placement.resources.memory)),
               one_line(doing, kTextWidth)});
  }
  return table;
}

/// How nodes are held to their limits is their host's property: it is told below the table.
Result<int> nodes(const Context& context, const std::string& job, bool all) {
  HELIO_TRY(api, ApiClient::connect(context));
  std::string target = "/v1/nodes" + query({{"all", all ? "true" : ""}});
  if (!job.empty()) {
    HELIO_TRY(id, api->resolve_job(job));
    target = "/v1/jobs/" + id + "/nodes";
  }
  HELIO_TRY(items, api->list(target));
  if (context.output() != Output::table) {
    print_document(context, items);
    return 0;
  }
  HELIO_TRY(found, decode_items<model::Node>(items));
  node_table(found).print();
  HELIO_TRY(host_items, api->list("/v1/hosts"));
  HELIO_TRY(hosts, decode_items<model::Host>(host_items));
  for (const model::Host& host : hosts) {
    fmt::print("\n{}: limits by {}; isolation by {}\n", host.id.value, host.limits, host.isolation);
  }
  return 0;
}

Result<int> hosts(const Context& context) {
  return print_list<model::Host>(context, "/v1/hosts", [](const std::vector<model::Host>& found) {
    Table table({"HOST", "STATE", "CPU", "MEMORY", "SHM", "GPU", "LIMITS", "ISOLATION"});
    for (const model::Host& host : found) {
      const bool virtual_gpus = !host.gpus.empty() && host.gpus.front().is_virtual;
      std::string cpu = format_cpu(host.capacity.cpu);
      if (host.cpu_overcommit > 1) cpu += fmt::format(" ({} real x {:g})", format_cpu(host.physical_cpu), host.cpu_overcommit);
      table.row({host.id.value, std::string(json::enum_name(host.state)), cpu, format_bytes(host.capacity.memory),
                 format_bytes(host.capacity.shm), gpus_of(host.capacity, virtual_gpus), host.limits, host.isolation});
    }
    return table;
  });
}

// --- flavors ----------------------------------------------------------------------------------------------------------------------

Result<int> list_flavors(const Context& context) {
  return print_list<model::Flavor>(context, "/v1/flavors", [](const std::vector<model::Flavor>& found) {
    Table table({"FLAVOR", "CPU", "MEMORY", "SHM", "GPU", "MODEL", "ABOUT"});
    for (const model::Flavor& flavor : found) {
      table.row({flavor.name.value, format_cpu(flavor.resources.cpu), format_bytes(flavor.resources.memory),
                 format_bytes(flavor.resources.shm), gpus_of(flavor.resources, flavor.virtual_gpus), flavor.gpu_model,
                 one_line(flavor.about, kTextWidth)});
    }
    return table;
  });
}

struct FlavorFlags {
  std::string name;
  double cpu = 1;
  std::string memory = "2GiB";
  std::string shm;
  int gpus = 0;
  bool virtual_gpus = false;
  std::string about;
};

Result<int> set_flavor(const Context& context, const FlavorFlags& flags) {
  json::Object resources{{"cpu", flags.cpu}, {"memory", flags.memory}, {"gpus", flags.gpus}};
  if (!flags.shm.empty()) resources["shm"] = flags.shm;
  json::Object body{{"name", flags.name}, {"resources", std::move(resources)}};
  if (flags.virtual_gpus) body["virtual_gpus"] = true;
  if (!flags.about.empty()) body["about"] = flags.about;
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(reply, api->send("PUT", "/v1/flavors/" + net::url_encode(flags.name), body));
  if (context.output() != Output::table)
    print_document(context, reply);
  else
    fmt::print("flavor {} is set\n", flags.name);
  return 0;
}

// --- images -----------------------------------------------------------------------------------------------------------------------

Result<int> list_images(const Context& context) {
  return print_list<model::Image>(context, "/v1/images", [](const std::vector<model::Image>& found) {
    Table table({"IMAGE", "RAY", "PYTHON", "TOKENS", "PREFIX"});
    for (const model::Image& image : found) {
      table.row({image.name.value, image.ray_version, image.python_version, image.allow_no_token ? "none (allowed)" : "yes", image.prefix});
    }
    return table;
  });
}

/// The prefix above bin/python when a Python program was named.
Result<std::string> prefix_of(const std::string& given) {
  if (given.empty()) return fail(ErrorCode::invalid_argument, "--python takes a folder or a Python program, not ''");
  HELIO_TRY(absolute, absolute_path(given));
  const std::filesystem::path path = absolute;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return path.string().ends_with('/') ? path.parent_path().string() : path.string();
  return path.parent_path().filename() == "bin" ? path.parent_path().parent_path().string() : path.string();
}

Result<int> add_image(const Context& context, const std::string& name, const std::string& python, bool allow_no_token) {
  HELIO_TRY(prefix, prefix_of(python));
  json::Object body{{"name", name}, {"prefix", prefix}};
  if (allow_no_token) body["allow_no_token"] = true;
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_TRY(reply, api->send("PUT", "/v1/images/" + net::url_encode(name), body));
  if (context.output() != Output::table) {
    print_document(context, reply);
    return 0;
  }
  HELIO_TRY(image, json::decode<model::Image>(reply, json::Unknown::ignore));
  fmt::print("image {}: Ray {}, Python {}, {}\n", image.name.value, image.ray_version, image.python_version, image.prefix);
  return 0;
}

Result<int> remove_named(const Context& context, const std::string& kind, const std::string& name) {
  HELIO_TRY(api, ApiClient::connect(context));
  HELIO_CHECK_OK(api->remove("/v1/" + kind + "s/" + net::url_encode(name)));
  fmt::print("{} {} is removed\n", kind, name);
  return 0;
}

void add_remove(CLI::App& parent, Context& context, const std::string& kind) {
  const auto name = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand("rm", "remove one");
  command->add_option("name", *name)->required();
  command->callback([&context, kind, name] { context.action = [&context, kind, name] { return remove_named(context, kind, *name); }; });
}

void add_flavor_commands(CLI::App& app, Context& context) {
  CLI::App* flavors = app.add_subcommand("flavors", "shapes of nodes: list, set, rm")->alias("flavor");
  flavors->callback([&context, flavors] {
    if (flavors->get_subcommands().empty()) context.action = [&context] { return list_flavors(context); };
  });
  CLI::App* list = flavors->add_subcommand("list", "list them")->alias("ls");
  list->callback([&context] { context.action = [&context] { return list_flavors(context); }; });
  const auto flags = std::make_shared<FlavorFlags>();
  CLI::App* set = flavors->add_subcommand("set", "make or change one");
  set->add_option("name", flags->name)->required();
  set->add_option("--cpu", flags->cpu, "CPUs, such as 2 or 0.5");
  set->add_option("--memory", flags->memory, "such as 4GiB");
  set->add_option("--shm", flags->shm, "of /dev/shm, inside memory");
  set->add_option("--gpus", flags->gpus);
  set->add_flag("--virtual-gpus", flags->virtual_gpus, "its GPUs are counted but do not exist");
  set->add_option("--about", flags->about);
  set->callback([&context, flags] { context.action = [&context, flags] { return set_flavor(context, *flags); }; });
  add_remove(*flavors, context, "flavor");
}

void add_image_commands(CLI::App& app, Context& context) {
  CLI::App* images = app.add_subcommand("images", "software of nodes: list, add, rm")->alias("image");
  images->callback([&context, images] {
    if (images->get_subcommands().empty()) context.action = [&context] { return list_images(context); };
  });
  CLI::App* list = images->add_subcommand("list", "list them")->alias("ls");
  list->callback([&context] { context.action = [&context] { return list_images(context); }; });
  const auto name = std::make_shared<std::string>();
  const auto python = std::make_shared<std::string>();
  const auto allow = std::make_shared<bool>(false);
  CLI::App* add = images->add_subcommand("add", "register a Python prefix that has Ray");
  add->add_option("name", *name)->required();
  add->add_option("--python", *python,
                  "prefix: a folder that holds bin/python and bin/ray, such as a virtual environment, or its bin/python")
      ->required();
  add->add_flag("--allow-no-token", *allow, "accept a Ray before 2.52, which trusts every caller on this machine");
  add->callback([&context, name, python, allow] {
    context.action = [&context, name, python, allow] { return add_image(context, *name, *python, *allow); };
  });
  add_remove(*images, context, "image");
}

}  // namespace

void add_pool_commands(CLI::App& app, Context& context) {
  const auto job = std::make_shared<std::string>();
  const auto all = std::make_shared<bool>(false);
  CLI::App* nodes_command = app.add_subcommand("nodes", "Ray nodes that live now, or those of a job");
  nodes_command->add_option("job", *job, "id, unique prefix, name, or last");
  nodes_command->add_flag("-a,--all", *all, "those that are gone too");
  nodes_command->callback([&context, job, all] { context.action = [&context, job, all] { return nodes(context, *job, *all); }; });

  CLI::App* hosts_command = app.add_subcommand("hosts", "machines, what they hold and how they limit and isolate");
  hosts_command->callback([&context] { context.action = [&context] { return hosts(context); }; });

  add_flavor_commands(app, context);
  add_image_commands(app, context);
}

}  // namespace helio::cli
