#include "agent/daemon_link.h"

#include "base/base64.h"
#include "base/log.h"

#include <algorithm>
#include <utility>

namespace helio::agent {

namespace {

constexpr Duration kFirstBackoff = 50ms;
constexpr Duration kMaxBackoff = 2s;
constexpr Duration kDialDeadline = 10s;
constexpr Duration kDefaultExec = 60s;

std::string frame(std::string_view type, std::string_view key, json::Value value) {
  json::Object object{{"type", type}};
  object[key] = std::move(value);
  return json::dump(object);
}

std::int64_t number_in(const json::Object& object, std::string_view key) {
  const json::Value* value = object.if_contains(key);
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->get_int64();
  return value->is_uint64() ? static_cast<std::int64_t>(value->get_uint64()) : 0;
}

std::vector<StreamAck> read_acks(const json::Object& object) {
  std::vector<StreamAck> acks;
  const json::Value* streams = object.if_contains("streams");
  if (streams == nullptr || !streams->is_array()) return acks;
  for (const json::Value& entry : streams->get_array()) {
    const json::Object* ack = entry.if_object();
    if (ack == nullptr) continue;
    const json::Value* ended = ack->if_contains("ended");
    acks.push_back({static_cast<std::int32_t>(number_in(*ack, "id")), number_in(*ack, "offset"),
                    ended != nullptr && ended->is_bool() && ended->get_bool()});
  }
  return acks;
}

std::optional<ExecRequest> read_exec(const json::Object& object) {
  const json::Value* value = object.if_contains("exec");
  const json::Object* exec = value != nullptr ? value->if_object() : nullptr;
  if (exec == nullptr) return std::nullopt;
  ExecRequest request;
  const json::Value* id = exec->if_contains("id");
  if (id == nullptr || !id->is_string()) return std::nullopt;
  request.id = std::string(id->get_string());
  if (const json::Value* argv = exec->if_contains("argv"); argv != nullptr && argv->is_array()) {
    for (const json::Value& word : argv->get_array()) {
      if (word.is_string()) request.argv.emplace_back(word.get_string());
    }
  }
  if (const json::Value* program = exec->if_contains("program"); program != nullptr && program->is_string()) {
    request.program = std::string(program->get_string());
  }
  const std::int64_t seconds = number_in(*exec, "seconds");
  request.limit = seconds > 0 ? std::chrono::seconds(std::min<std::int64_t>(seconds, 86'400)) : kDefaultExec;
  return request;
}

}  // namespace

std::string encode_piece(std::int32_t stream, std::int64_t offset, std::string_view bytes) {
  std::string out;
  out.reserve(13 + bytes.size());
  out.push_back(1);
  const auto put = [&](std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
  };
  put(static_cast<std::uint32_t>(stream), 4);
  put(static_cast<std::uint64_t>(offset), 8);
  out.append(bytes);
  return out;
}

struct DaemonLink::Shared : std::enable_shared_from_this<DaemonLink::Shared> {
  rt::EventLoop& loop;
  Executor& timers;
  std::function<Result<std::string>()> address;
  std::string token;
  std::function<model::AgentHello()> hello;
  LinkHandlers handlers;

  std::mutex mutex;  // guards what follows
  std::shared_ptr<net::WsSession> session;
  bool welcome = false;
  bool stopped = false;
  Duration backoff = kFirstBackoff;

  Shared(rt::EventLoop& l, Executor& t, std::function<Result<std::string>()> a, std::string tok, std::function<model::AgentHello()> h,
         LinkHandlers hs)
      : loop(l), timers(t), address(std::move(a)), token(std::move(tok)), hello(std::move(h)), handlers(std::move(hs)) {}

  void dial() {
    {
      const std::scoped_lock lock(mutex);
      if (stopped) return;
    }
    const auto url = address();
    if (!url) return dial_later();
    net::WsHandlers ws;
    const auto self = shared_from_this();
    ws.on_text = [self](std::string_view text) { self->on_text(text); };
    ws.on_close = [self](const Error& why) { self->on_close(why); };
    ws.on_drained = [self] { self->handlers.on_drained(); };
    net::ws_connect(
        loop, *url, {{"Authorization", "Bearer " + token}}, kDialDeadline,
        [self](std::shared_ptr<net::WsSession> opened) { self->on_open(std::move(opened)); }, std::move(ws));
  }

  void dial_later() {
    Duration wait;
    {
      const std::scoped_lock lock(mutex);
      if (stopped) return;
      wait = backoff;
      backoff = std::min(backoff * 2, kMaxBackoff);
    }
    timers.after(wait, [self = shared_from_this()] { self->dial(); });
  }

  void on_open(std::shared_ptr<net::WsSession> opened) {
    const std::string text = frame("hello", "hello", json::encode(hello()));
    {
      const std::scoped_lock lock(mutex);
      if (!stopped) session = opened;
    }
    opened->send_text(text);
  }

  void on_close(const Error& why) {
    bool was_up = false;
    {
      const std::scoped_lock lock(mutex);
      if (stopped) return;
      was_up = std::exchange(welcome, false);
      session.reset();
      if (was_up) backoff = kFirstBackoff;
      // A token that is refused will hardly be accepted a moment later.
      if (why.code() == ErrorCode::unauthenticated || why.code() == ErrorCode::permission_denied) backoff = kMaxBackoff;
    }
    if (was_up) {
      log::info("connection to the daemon lost: {}", why.text());
      handlers.on_lost();
    }
    dial_later();
  }

  void on_text(std::string_view text) {
    {
      const std::scoped_lock lock(mutex);
      if (stopped) return;
    }
    const auto value = json::parse(text);
    if (!value || !value->is_object()) return log::warn("a frame of the daemon cannot be read");
    const json::Object& object = value->get_object();
    const json::Value* type_value = object.if_contains("type");
    if (type_value == nullptr || !type_value->is_string()) return;
    const std::string_view type = type_value->get_string();
    if (type == "welcome") {
      {
        const std::scoped_lock lock(mutex);
        welcome = true;
        backoff = kFirstBackoff;
      }
      handlers.on_welcome();
    } else if (type == "assignment") {
      decode_into<model::Assignment>(object, "assignment", handlers.on_assignment);
    } else if (type == "recorded") {
      handlers.on_recorded(number_in(object, "sequence"));
    } else if (type == "stream") {
      decode_into<model::StreamInfo>(object, "stream", handlers.on_stream);
    } else if (type == "ack") {
      handlers.on_acks(read_acks(object));
    } else if (type == "exec") {
      if (auto request = read_exec(object)) handlers.on_exec(std::move(*request));
    } else if (type == "exec_cancel") {
      if (auto request = read_exec(object)) handlers.on_exec_cancel(std::move(request->id));
    }
  }

  template <class T>
  void decode_into(const json::Object& object, std::string_view key, const std::function<void(T)>& handler) {
    const json::Value* value = object.if_contains(key);
    if (value == nullptr) return;
    auto decoded = json::decode<T>(*value, json::Unknown::ignore);
    if (!decoded) return log::warn("the daemon's {} cannot be read: {}", key, decoded.error().text());
    handler(std::move(*decoded));
  }

  std::shared_ptr<net::WsSession> open_session() {
    const std::scoped_lock lock(mutex);
    return welcome ? session : nullptr;
  }
  bool send(std::string text) {
    const auto open = open_session();
    return open && open->send_text(std::move(text));
  }
};

DaemonLink::DaemonLink(rt::EventLoop& loop, Executor& timers, std::function<Result<std::string>()> address, std::string token,
                       std::function<model::AgentHello()> hello, LinkHandlers handlers)
    : shared_(std::make_shared<Shared>(loop, timers, std::move(address), std::move(token), std::move(hello), std::move(handlers))) {}

DaemonLink::~DaemonLink() { stop(); }

void DaemonLink::start() {
  shared_->timers.post([shared = shared_] { shared->dial(); });
}

void DaemonLink::stop() {
  std::shared_ptr<net::WsSession> open;
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->stopped = true;
    open = std::exchange(shared_->session, nullptr);
  }
  if (open) open->close(1000, "leaving");
}

bool DaemonLink::connected() const { return shared_->open_session() != nullptr; }

bool DaemonLink::send_status(const model::AgentStatus& status) { return shared_->send(frame("status", "status", json::encode(status))); }
bool DaemonLink::send_stream(const model::StreamInfo& info) { return shared_->send(frame("stream", "stream", json::encode(info))); }

bool DaemonLink::send_piece(std::int32_t stream, std::int64_t offset, std::string_view bytes) {
  const auto open = shared_->open_session();
  return open && open->send_binary(encode_piece(stream, offset, bytes));
}

bool DaemonLink::send_exec_output(const std::string& id, std::string_view bytes) {
  return shared_->send(frame("exec_output", "exec", json::Object{{"id", id}, {"data", base64_encode(bytes)}}));
}

bool DaemonLink::send_exec_done(const std::string& id, std::optional<int> exit_code, const std::string& error) {
  json::Object done{{"id", id}, {"error", error}};
  if (exit_code) done["exit_code"] = *exit_code;
  return shared_->send(frame("exec_done", "exec", std::move(done)));
}

}  // namespace helio::agent
