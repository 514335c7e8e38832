#include "api/route.h"

#include <memory>
#include <mutex>

namespace helio::api {
namespace {

using auth::Kind;
using auth::Verb;

constexpr std::int32_t kLongestExec = 3600;
/// A client that reads nothing while a command prints more than this loses the command's output.
constexpr std::size_t kBufferLimit = 8U << 20U;

/// Between the agent's connection, which fills it, and the client's, which empties it.
class ExecPipe {
 public:
  void output(std::string base64) {
    ExecLine line;
    line.data = std::move(base64);
    push(line, false);
  }
  void done(const Result<std::int32_t>& result) {
    ExecLine line;
    if (result) {
      line.exit_code = *result;
    } else {
      line.error = result.error().message();
    }
    push(line, true);
  }
  net::BodySource::Piece take() {
    using Kind = net::BodySource::Piece::Kind;
    const std::scoped_lock lock(mutex_);
    if (!buffer_.empty()) return {Kind::data, std::exchange(buffer_, {})};
    return {ended_ ? Kind::end : Kind::pending, {}};
  }
  void set_waker(std::function<void()> waker) {
    const std::scoped_lock lock(mutex_);
    waker_ = std::move(waker);
  }

 private:
  void push(const ExecLine& line, bool last) {
    std::function<void()> wake;
    {
      const std::scoped_lock lock(mutex_);
      if (ended_) return;
      buffer_ += json::dump(json::encode(line)) + "\n";
      ended_ = last;
      if (!last && buffer_.size() > kBufferLimit) {
        ExecLine cut;
        cut.error = "the output was not read fast enough";
        buffer_ += json::dump(json::encode(cut)) + "\n";
        ended_ = true;
      }
      wake = waker_;
    }
    if (wake) wake();
  }

  std::mutex mutex_;
  std::string buffer_;
  bool ended_ = false;
  std::function<void()> waker_;
};

class ExecBody final : public net::BodySource {
 public:
  ExecBody(std::shared_ptr<ExecPipe> pipe, std::function<void()> cancel) : pipe_(std::move(pipe)), cancel_(std::move(cancel)) {}
  /// A client that went away ends its command; after the end this does nothing.
  ~ExecBody() override { cancel_(); }
  ExecBody(const ExecBody&) = delete;
  ExecBody& operator=(const ExecBody&) = delete;
  Piece next() override { return pipe_->take(); }
  void set_waker(std::function<void()> waker) override { pipe_->set_waker(std::move(waker)); }
  std::string keep_alive() override { return "{}\n"; }

 private:
  std::shared_ptr<ExecPipe> pipe_;
  std::function<void()> cancel_;
};

/// The newest node of the job that the user means.
Result<NodeId> find_node(const std::vector<model::Node>& nodes, const std::string& name) {
  const model::Node* found = nullptr;
  std::string live;
  for (const model::Node& node : nodes) {
    if (node.state == model::NodeState::gone) continue;
    const std::string brief = node.role == model::Role::head ? "head" : "w" + std::to_string(node.index);
    live += (live.empty() ? "" : ", ") + brief;
    if ((name == node.id.value || name == brief) && (found == nullptr || found->created < node.created)) found = &node;
  }
  if (found != nullptr && (found->state == model::NodeState::requested || found->state == model::NodeState::launched)) {
    return fail(Error(ErrorCode::precondition_failed,
                      fmt::format("node {} is still starting; it takes commands once its agent has connected: try again in a moment", name))
                    .at("$.node"));
  }
  if (found != nullptr) return found->id;
  if (live.empty()) return fail(Error(ErrorCode::precondition_failed, "the job has no live node").at("$.node"));
  return fail(Error(ErrorCode::not_found, "no live node '" + name + "'; there are " + live).at("$.node"));
}

Result<net::Response> exec(Context& context, Call& call) {
  HELIO_TRY(input, call.body<ExecInput>());
  if (input.argv.empty() || input.argv[0].empty()) {
    return fail(Error(ErrorCode::invalid_argument, "a command of at least one word is expected").at("$.argv"));
  }
  if (input.seconds < 1 || input.seconds > kLongestExec) {
    return fail(Error(ErrorCode::invalid_argument, fmt::format("expected 1 to {} seconds", kLongestExec)).at("$.seconds"));
  }
  HELIO_TRY(nodes, context.jobs.nodes(call.job()));
  HELIO_TRY(node, find_node(nodes, input.node));
  auto pipe = std::make_shared<ExecPipe>();
  link::ExecHandlers handlers;
  handlers.on_output = [pipe](std::string base64) { pipe->output(std::move(base64)); };
  handlers.on_done = [pipe](const Result<std::int32_t>& result) { pipe->done(result); };
  link::ExecRequest request;
  request.argv = input.argv;
  request.seconds = input.seconds;
  HELIO_CHECK_OK(
      context.feed.note(call.caller, node, "node.exec", "command by " + call.caller.principal + ": " + input.argv[0], context.clock.now()));
  HELIO_TRY(cancel, context.hub.exec(node, request, std::move(handlers)));
  net::Response out;
  out.headers.emplace_back("Content-Type", "application/x-ndjson");
  out.headers.emplace_back("Cache-Control", "no-store");
  out.source = std::make_unique<ExecBody>(std::move(pipe), std::move(cancel));
  return out;
}

}  // namespace

void add_exec_routes(Routes& routes) {
  routes.push_back({"POST",
                    "/v1/jobs/{id}/exec",
                    "execInNode",
                    "Run a command in a node; the reply has one JSON document per line: output, then the exit code",
                    Access{Verb::exec, Kind::job, true},
                    {},
                    schema_of<ExecInput>,
                    200,
                    schema_of<ExecLine>,
                    "application/x-ndjson",
                    false,
                    exec});
}

}  // namespace helio::api
