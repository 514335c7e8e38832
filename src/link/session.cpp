#include "link/session.h"

#include "base/log.h"
#include "store/observations.h"

namespace helio::link {
namespace {

constexpr int kPolicy = 1008;
constexpr int kTryAgain = 1013;
/// An agent keeps at most 4 MiB unacknowledged; one that sends far more does not keep the protocol.
constexpr std::size_t kUnhandledLimit = 16U << 20U;
/// An exec is given up so long after its own limit: the agent reports the end itself.
constexpr Duration kExecSlack = 15s;

const json::Value* member(const json::Value& frame, std::string_view name) {
  return frame.is_object() ? frame.get_object().if_contains(name) : nullptr;
}

std::string text_member(const json::Value& value, std::string_view name) {
  const json::Value* found = member(value, name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

}  // namespace

Session::Session(std::shared_ptr<Core> core, std::shared_ptr<net::WsSession> socket, NodeId node, AttemptId attempt)
    : core_(std::move(core)),
      socket_(socket),
      node_(std::move(node)),
      attempt_(std::move(attempt)),
      streams_(std::make_shared<Strand>(core_->pool)) {}

net::WsHandlers Session::start() {
  const std::weak_ptr<Session> weak = weak_from_this();
  hello_timer_ = core_->timers.after(core_->options.hello_deadline, [weak] {
    if (const auto self = weak.lock()) self->close(kPolicy, "no hello");
  });
  net::WsHandlers handlers;
  handlers.on_text = [self = shared_from_this()](std::string_view frame) { self->on_text(frame); };
  handlers.on_binary = [self = shared_from_this()](std::string_view frame) { self->on_binary(frame); };
  handlers.on_close = [self = shared_from_this()](const Error& why) { self->on_closed(why); };
  return handlers;
}

void Session::close(int code, const std::string& reason) {
  if (const auto socket = socket_.lock()) socket->close(code, reason);
}

void Session::send(std::string frame) {
  const auto socket = socket_.lock();
  if (!socket || closed_.load()) return;
  // Both documents are level-triggered, so an agent that does not read may as well dial again.
  if (!socket->send_text(std::move(frame))) socket->close(kTryAgain, "outgoing queue is full");
}

void Session::on_text(std::string_view text) {
  auto frame = json::parse(text);
  if (!frame) {
    close(kPolicy, "not JSON");
    return;
  }
  const std::string type = text_member(*frame, "type");
  if (type == "hello") {
    on_hello(*frame);
  } else if (!greeted_) {
    close(kPolicy, "hello comes first");
  } else if (type == "status") {
    on_status(*frame);
  } else if (type == "stream") {
    on_stream(*frame);
  } else if (type == "exec_output") {
    on_exec_output(*frame);
  } else if (type == "exec_done") {
    on_exec_done(*frame);
  }
}

void Session::on_hello(const json::Value& frame) {
  const json::Value* body = member(frame, "hello");
  if (greeted_ || body == nullptr) return;
  auto hello = json::decode<model::AgentHello>(*body, json::Unknown::ignore);
  if (!hello || hello->node != node_) {
    close(kPolicy, hello ? "the token belongs to another node" : hello.error().text());
    return;
  }
  greeted_ = true;
  core_->timers.cancel(hello_timer_);
  if (const auto former = core_->attach(shared_from_this())) former->close(kPolicy, "replaced by a newer connection");
  entry_ = core_->entry(node_);
  log::info("node {}: agent {} connected", node_.value, hello->agent_version);
  entry_->strand->post([self = shared_from_this()] { self->record_open(); });
}

void Session::record_open() {
  if (closed_.load()) return;
  opened_ = true;
  send(welcome_frame(core_->options.version, core_->clock.now()));
  push_assignment();
  if (auto recorded = store::record_connection(core_->store, node_, true, core_->clock.now()); !recorded) {
    log::warn("node {}: connection cannot be recorded: {}", node_.value, recorded.error().text());
    close(kTryAgain, "store is not available");
  }
}

void Session::push_assignment() {
  if (closed_.load() || !opened_) return;
  auto assignment = core_->assignment(node_);
  if (!assignment) {
    log::warn("node {}: no assignment: {}", node_.value, assignment.error().text());
    close(assignment.error().code() == ErrorCode::not_found ? kPolicy : kTryAgain, "no assignment");
    return;
  }
  if (assignment->generation <= sent_generation_) return;
  sent_generation_ = assignment->generation;
  send(assignment_frame(*assignment));
}

void Session::on_status(const json::Value& frame) {
  const json::Value* body = member(frame, "status");
  if (body == nullptr) return;
  auto status = json::decode<model::AgentStatus>(*body, json::Unknown::ignore);
  if (!status || status->node != node_) {
    log::warn("node {}: status refused: {}", node_.value, status ? "it is of another node" : status.error().text());
    return;
  }
  if (status->usage) {
    const std::scoped_lock lock(core_->mutex);
    entry_->usage = status->usage;
  }
  {
    const std::scoped_lock lock(mutex_);
    const bool waiting = pending_.has_value();
    if (waiting && pending_->sequence >= status->sequence) return;
    pending_ = std::move(*status);
    if (waiting) return;
  }
  entry_->strand->post([self = shared_from_this()] { self->record_pending(); });
}

void Session::record_pending() {
  model::AgentStatus status;
  {
    const std::scoped_lock lock(mutex_);
    if (!pending_) return;
    status = std::move(*pending_);
    pending_.reset();
  }
  // A stale one is answered too: a newer one is durable, so the agent need not repeat it.
  if (auto recorded = store::record_status(core_->store, status, core_->clock.now()); recorded) {
    send(recorded_frame(status.sequence));
    return;
  } else if (closed_.load() || core_->stopping.load()) {
    return;
  } else {
    log::warn("node {}: status cannot be recorded: {}", node_.value, recorded.error().text());
  }
  {
    const std::scoped_lock lock(mutex_);
    if (pending_) return;  // a newer one is on its way
    pending_ = std::move(status);
  }
  core_->timers.after(core_->options.retry_after, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->entry_->strand->post([self] { self->record_pending(); });
  });
}

void Session::with_intake(std::function<void(Intake&)> use) {
  streams_->post([self = shared_from_this(), use = std::move(use)] {
    if (self->closed_.load()) return;
    if (!self->intake_) {
      const std::weak_ptr<Session> weak = self;
      auto send = [weak](std::string frame) {
        if (const auto session = weak.lock()) session->send(std::move(frame));
      };
      auto retry_later = [weak, core = self->core_.get()](Duration pause) {
        core->timers.after(pause, [weak] {
          if (const auto session = weak.lock()) session->with_intake([](Intake& intake) { intake.retry(); });
        });
      };
      self->intake_ = std::make_unique<Intake>(*self->core_, self->attempt_, self->node_, weak, send, retry_later);
    }
    use(*self->intake_);
  });
}

void Session::on_stream(const json::Value& frame) {
  const json::Value* body = member(frame, "stream");
  if (body == nullptr) return;
  auto info = json::decode<model::StreamInfo>(*body, json::Unknown::ignore);
  if (!info) {
    log::warn("node {}: stream refused: {}", node_.value, info.error().text());
    return;
  }
  with_intake([info = std::move(*info)](Intake& intake) { intake.announce(info); });
}

void Session::on_binary(std::string_view frame) {
  auto parsed = parse_data(frame);
  if (!greeted_ || !parsed) {
    close(kPolicy, greeted_ ? parsed.error().message() : "hello comes first");
    return;
  }
  const std::size_t size = frame.size();
  if (unhandled_.fetch_add(size) + size > kUnhandledLimit) {
    close(kPolicy, "more than the window is on its way");
    return;
  }
  with_intake([this, data = *parsed, bytes = std::string(parsed->bytes)](Intake& intake) mutable {
    DataFrame copy = data;
    copy.bytes = bytes;
    intake.data(copy);
    unhandled_.fetch_sub(kDataHeader + bytes.size());
  });
}

void Session::acknowledge(const std::vector<Ack>& acks) { send(ack_frame(acks)); }

Result<std::function<void()>> Session::exec(const ExecRequest& request, ExecHandlers handlers) {
  const std::string id = "x" + std::to_string(core_->next_exec.fetch_add(1));
  {
    const std::scoped_lock lock(mutex_);
    if (closed_.load()) return fail(ErrorCode::unavailable, "the agent of node {} is not connected", node_.value);
    execs_[id] = std::make_shared<ExecHandlers>(std::move(handlers));
  }
  core_->timers.after(std::chrono::seconds(request.seconds) + kExecSlack, [weak = weak_from_this(), id] {
    if (const auto self = weak.lock()) {
      self->finish_exec(id, fail(ErrorCode::deadline_exceeded, "node {} did not report the end of the command", self->node_.value));
    }
  });
  send(exec_frame(id, request));
  return [weak = weak_from_this(), id] {
    if (const auto self = weak.lock()) self->cancel_exec(id);
  };
}

void Session::cancel_exec(const std::string& id) {
  {
    const std::scoped_lock lock(mutex_);
    if (!execs_.contains(id)) return;
  }
  send(exec_cancel_frame(id));
}

void Session::on_exec_output(const json::Value& frame) {
  const json::Value* body = member(frame, "exec");
  if (body == nullptr) return;
  std::shared_ptr<ExecHandlers> handlers;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = execs_.find(text_member(*body, "id"));
    if (found == execs_.end()) return;
    handlers = found->second;
  }
  handlers->on_output(text_member(*body, "data"));
}

void Session::on_exec_done(const json::Value& frame) {
  const json::Value* body = member(frame, "exec");
  if (body == nullptr) return;
  const std::string error = text_member(*body, "error");
  const json::Value* code = member(*body, "exit_code");
  Result<std::int32_t> result = 0;
  if (!error.empty()) {
    result = fail(ErrorCode::precondition_failed, "{}", error);
  } else if (code == nullptr || !code->is_int64()) {
    result = fail(ErrorCode::internal, "node {} told no exit code", node_.value);
  } else {
    result = static_cast<std::int32_t>(code->get_int64());
  }
  finish_exec(text_member(*body, "id"), std::move(result));
}

void Session::finish_exec(const std::string& id, Result<std::int32_t> result) {
  std::shared_ptr<ExecHandlers> handlers;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = execs_.find(id);
    if (found == execs_.end()) return;
    handlers = std::move(found->second);
    execs_.erase(found);
  }
  handlers->on_done(std::move(result));
}

void Session::on_closed(const Error& why) {
  core_->timers.cancel(hello_timer_);
  std::map<std::string, std::shared_ptr<ExecHandlers>> execs;
  {
    const std::scoped_lock lock(mutex_);
    closed_.store(true);
    execs.swap(execs_);
  }
  for (const auto& [id, handlers] : execs) {
    handlers->on_done(fail(ErrorCode::unavailable, "the connection to node {} was lost: {}", node_.value, why.message()));
  }
  if (!greeted_) return;
  // What a graceful stop of the daemon cuts is no fact about the node; the next start marks all as not connected.
  if (!core_->detach(*this) || core_->stopping.load()) return;
  log::info("node {}: agent disconnected: {}", node_.value, why.message());
  entry_->strand->post([core = core_, node = node_] {
    if (core->find(node)) return;  // back already
    if (auto recorded = store::record_connection(core->store, node, false, core->clock.now()); !recorded) {
      log::warn("node {}: disconnection cannot be recorded: {}", node.value, recorded.error().text());
    }
    core->forget(node);
  });
}

}  // namespace helio::link
