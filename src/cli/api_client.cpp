#include "cli/api_client.h"

#include "cli/local_file.h"
#include "cli/table.h"

#include <algorithm>

namespace helio::cli {
namespace {

std::string string_member(const json::Object& object, std::string_view name) {
  const json::Value* found = object.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

constexpr std::size_t kPage = 200;
constexpr std::size_t kFullJobId = 18;  // "j-" and 16 characters

bool looks_like_job_id(std::string_view text) { return text.starts_with("j-") && text.size() == kFullJobId; }

/// Items of a list reply: {"items": [...], "next": "..."}.
Result<json::Array> take_page(json::Value&& reply, std::string& next) {
  next.clear();
  if (json::Array* plain = reply.if_array()) return std::move(*plain);
  json::Object* object = reply.if_object();
  json::Value* items = object == nullptr ? nullptr : object->if_contains("items");
  if (items == nullptr || !items->is_array()) return fail(ErrorCode::internal, "the daemon's list reply has no items");
  next = string_member(*object, "next");
  return std::move(items->get_array());
}

}  // namespace

std::string query(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (value.empty()) continue;
    out += out.empty() ? '?' : '&';
    out += name + "=" + net::url_encode(value);
  }
  return out;
}

Error problem_error(int status, std::string_view body) {
  const auto parsed = json::parse(body);
  const json::Object* object = parsed && parsed->is_object() ? &parsed->get_object() : nullptr;
  const auto code = object == nullptr ? std::nullopt : error_code_from_string(string_member(*object, "code"));
  if (!code) {
    const std::string start(body.substr(0, 200));
    return Error(ErrorCode::internal, fmt::format("the daemon answered {}: {}", status, start.empty() ? "nothing" : start));
  }
  std::string message = string_member(*object, "detail");
  if (message.empty()) message = string_member(*object, "title");
  Error error = Error(*code, std::move(message)).at(string_member(*object, "path"));
  if (const json::Value* args = object->if_contains("args"); args != nullptr && args->is_object()) {
    for (const auto& member : args->get_object()) {
      std::string value = member.value().is_string() ? std::string(member.value().get_string()) : json::dump(member.value());
      Error more(std::move(error).with(std::string(member.key()), std::move(value)));
      error = std::move(more);
    }
  }
  return error;
}

bool daemon_answers(const std::string& url, Duration deadline, const std::string& roots) {
  auto http = net::HttpClient::create(url, {}, roots);
  if (!http) return false;
  net::ClientRequest request;
  request.target = "/v1/healthz";
  request.deadline = deadline;
  const auto response = (*http)->send(request);
  return response && response->status == 200;
}

Result<std::string> token_of(const Context& context) {
  if (!context.token.empty()) return context.token;
  if (!context.url.empty()) {
    // The token of this home is for the daemon of this home alone.
    const auto own = running_daemon(context.home);
    std::string url = context.url;
    while (url.ends_with('/')) url.pop_back();
    if (!own || own->url != url)
      return fail(ErrorCode::unauthenticated, "{} is not the daemon of this home: set HELIOSTAT_TOKEN to a token of its own", url);
  }
  const auto text = read_file(context.home.admin_token());
  if (!text) return fail(ErrorCode::unauthenticated, "no token: set HELIOSTAT_TOKEN, or start the daemon of this home with `helio up`");
  return text->substr(0, text->find_first_of(" \r\n"));
}

Result<DaemonAddress> daemon_address(const Context& context) {
  DaemonAddress out;
  out.url = context.url;
  if (out.url.empty()) {
    auto found = running_daemon(context.home);
    if (!found && !context.token.empty()) {
      return fail(ErrorCode::unavailable, "{}; HELIOSTAT_TOKEN is set: for another daemon set HELIOSTAT_URL too", found.error().message());
    }
    HELIO_TRY(file, std::move(found));
    out.url = file.url;
    out.file = std::move(file);
  }
  HELIO_TRY(token, token_of(context));
  out.token = std::move(token);
  while (out.url.ends_with('/')) out.url.pop_back();
  return out;
}

Result<std::unique_ptr<ApiClient>> ApiClient::connect(const Context& context) {
  HELIO_TRY(to, daemon_address(context));
  HELIO_TRY(http, net::HttpClient::create(to.url, {{"Authorization", "Bearer " + to.token}, {"User-Agent", "helio"}}, context.roots));
  return std::unique_ptr<ApiClient>(new ApiClient(std::move(to.url), std::move(http), std::move(to.file)));
}

Result<void> ApiClient::check_daemon() const {
  if (!daemon_ || is_alive(*daemon_)) return {};
  return fail(ErrorCode::unavailable, "the daemon at {} has ended; start it with `helio up`", url_);
}

Error ApiClient::describe(Error error) const {
  if (error.code() != ErrorCode::unavailable || !error.args().empty()) return error;
  return Error(ErrorCode::unavailable, fmt::format("no daemon answers at {} ({}); start it with `helio up`", url_, error.message()));
}

Result<net::ClientResponse> ApiClient::exchange(const net::ClientRequest& request) {
  HELIO_CHECK_OK(check_daemon());
  auto response = http_->send(request);
  if (!response) return fail(describe(std::move(response).error()));
  if (response->status >= 300) return fail(problem_error(response->status, response->body));
  return response;
}

Result<json::Value> ApiClient::get(const std::string& target, Duration deadline) {
  net::ClientRequest request;
  request.target = target;
  request.deadline = deadline;
  HELIO_TRY(response, exchange(request));
  return json::parse(response.body);
}

Result<json::Value> ApiClient::send(const std::string& method, const std::string& target, const json::Value& body,
                                    const net::Headers& headers) {
  net::ClientRequest request;
  request.method = method;
  request.target = target;
  request.headers = headers;
  if (!body.is_null()) {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = json::dump(body);
  }
  HELIO_TRY(response, exchange(request));
  if (response.body.empty()) return json::Value(json::Object{});
  return json::parse(response.body);
}

Result<void> ApiClient::remove(const std::string& target) {
  net::ClientRequest request;
  request.method = "DELETE";
  request.target = target;
  HELIO_CHECK_OK(exchange(request));
  return {};
}

Result<bool> ApiClient::exists(const std::string& target) {
  net::ClientRequest request;
  request.method = "HEAD";
  request.target = target;
  HELIO_CHECK_OK(check_daemon());
  auto response = http_->send(request);
  if (!response) return fail(describe(std::move(response).error()));
  if (response->status == 404) return false;
  if (response->status >= 300) return fail(ErrorCode::internal, "the daemon answered {} to HEAD {}", response->status, target);
  return true;
}

Result<void> ApiClient::put_file(const std::string& target, const std::string& file) {
  net::ClientRequest request;
  request.method = "PUT";
  request.target = target;
  request.headers.emplace_back("Content-Type", "application/zip");
  request.body_file = file;
  request.deadline = 10min;
  HELIO_CHECK_OK(exchange(request));
  return {};
}

Result<void> ApiClient::stream(const net::ClientRequest& request, const std::function<bool(std::string_view)>& on_data) {
  HELIO_CHECK_OK(check_daemon());
  auto response = http_->stream(request, on_data);
  if (!response) return fail(describe(std::move(response).error()));
  if (response->status >= 300) return fail(problem_error(response->status, response->body));
  return {};
}

Result<net::Headers> ApiClient::download(const std::string& target, const std::function<bool(std::string_view)>& on_data) {
  net::ClientRequest request;
  request.target = target;
  request.deadline = 60s;
  HELIO_CHECK_OK(check_daemon());
  auto response = http_->stream(request, on_data);
  if (!response) return fail(describe(std::move(response).error()));
  if (response->status >= 300) return fail(problem_error(response->status, response->body));
  return std::move(response->headers);
}

Result<json::Array> ApiClient::list(const std::string& target, std::size_t at_most) {
  json::Array all;
  std::string cursor;
  const bool paged = target.starts_with("/v1/jobs") && !target.starts_with("/v1/jobs/");  // other lists are short and come whole
  do {
    const std::size_t want = at_most == 0 ? kPage : std::min(kPage, at_most - all.size());
    std::string page = target;
    if (paged) page += (target.contains('?') ? "&" : "?") + ("limit=" + std::to_string(want));
    if (!cursor.empty()) page += "&cursor=" + net::url_encode(cursor);
    HELIO_TRY(reply, get(page));
    HELIO_TRY(items, take_page(std::move(reply), cursor));
    if (items.empty()) break;
    for (json::Value& item : items) all.push_back(std::move(item));
  } while (!cursor.empty() && (at_most == 0 || all.size() < at_most));
  return all;
}

Result<model::Job> ApiClient::job(const std::string& id) {
  HELIO_TRY(reply, get("/v1/jobs/" + net::url_encode(id)));
  return json::decode<model::Job>(reply, json::Unknown::ignore);
}

Result<std::vector<model::Attempt>> ApiClient::attempts(const std::string& id) {
  HELIO_TRY(reply, get("/v1/jobs/" + net::url_encode(id) + "/attempts"));
  std::string next;
  HELIO_TRY(items, take_page(std::move(reply), next));
  return decode_items<model::Attempt>(items);
}

Result<std::vector<model::Node>> ApiClient::nodes(const std::string& id) {
  HELIO_TRY(reply, get("/v1/jobs/" + net::url_encode(id) + "/nodes"));
  std::string next;
  HELIO_TRY(items, take_page(std::move(reply), next));
  return decode_items<model::Node>(items);
}

Result<std::string> ApiClient::resolve_job(const std::string& what) {
  // An unset variable of a script: every id begins with nothing.
  if (what.empty()) return fail(ErrorCode::invalid_argument, "the job is empty: give an id, a unique prefix, a name, or last");
  if (looks_like_job_id(what)) return what;
  if (what == "last") {
    HELIO_TRY(newest, list("/v1/jobs", 1));
    if (newest.empty()) return fail(ErrorCode::not_found, "there is no job yet; `helio run -- COMMAND` makes one");
    return string_member(newest[0].get_object(), "id");
  }
  HELIO_TRY(items, list("/v1/jobs"));
  HELIO_TRY(jobs, decode_items<model::Job>(items));
  return choose_job(jobs, what, SystemClock::instance().now());
}

Result<std::vector<std::string>> ApiClient::resolve_jobs(const std::vector<std::string>& whats) {
  std::vector<std::string> ids;
  for (const std::string& what : whats) {
    HELIO_TRY(id, resolve_job(what));
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(std::move(id));
  }
  return ids;
}

namespace {

/// For those who must choose one: id, state and age of each.
std::string candidates(const std::vector<const model::Job*>& jobs, Timestamp now) {
  const std::size_t shown = std::min<std::size_t>(jobs.size(), 5);
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    out += fmt::format("{}{} {} {} old", i == 0 ? "" : ", ", jobs[i]->id.value, json::enum_name(jobs[i]->state),
                       short_age(now - jobs[i]->created));
  }
  return shown < jobs.size() ? out + ", …" : out;
}

}  // namespace

Result<std::string> choose_job(const std::vector<model::Job>& jobs, const std::string& what, Timestamp now) {
  std::vector<const model::Job*> named;
  std::vector<const model::Job*> living;
  std::vector<const model::Job*> begun;
  for (const model::Job& job : jobs) {
    const std::string_view id = job.id.value;
    if (id.starts_with(what) || id.substr(std::min<std::size_t>(2, id.size())).starts_with(what)) begun.push_back(&job);
    if (job.spec.name != what) continue;
    named.push_back(&job);
    if (!is_terminal(job.state)) living.push_back(&job);
  }
  if (living.size() == 1) return living.front()->id.value;
  if (living.size() > 1) {
    return fail(ErrorCode::conflict, "'{}' means {} jobs that have not ended ({}); give an id", what, living.size(),
                candidates(living, now));
  }
  if (!named.empty()) return named.front()->id.value;
  if (begun.size() == 1) return begun.front()->id.value;
  if (begun.empty()) return fail(ErrorCode::not_found, "no job has the id or name '{}'; `helio ps --all` lists them", what);
  return fail(ErrorCode::conflict, "{} ids begin with '{}' ({}); give more of it", begun.size(), what, candidates(begun, now));
}

}  // namespace helio::cli
