#include "api/browser.h"
#include "api/page.h"

#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <vector>

namespace helio::api {
namespace {

constexpr std::int64_t kLogEnd = 32 << 10;

struct Words {
  std::string_view gone, outcome, attempts, number, state, began, took, cause, nodes, node, role, host, detail, timeline, log_end,
      whole_log, no_log, more;
};

constexpr Words kEnglish{"The cluster of this job is gone; this is what is kept of it.",
                         "Outcome",
                         "Attempts",
                         "Attempt",
                         "State",
                         "Began",
                         "Took",
                         "Why it ended",
                         "Nodes of the last attempt",
                         "Node",
                         "Role",
                         "Host",
                         "Last word",
                         "Where the time went",
                         "End of the entrypoint's output",
                         "the whole output",
                         "The entrypoint printed nothing that is still kept.",
                         "Everything else that is kept:"};
constexpr Words kChinese{"该任务的集群已释放，以下是保留的记录。",
                         "结果",
                         "尝试",
                         "尝试",
                         "状态",
                         "开始时间",
                         "用时",
                         "结束原因",
                         "最后一次尝试的节点",
                         "节点",
                         "角色",
                         "主机",
                         "最后信息",
                         "时间去向",
                         "入口程序输出的末尾",
                         "完整输出",
                         "没有保留入口程序的输出。",
                         "其余保留内容："};

std::string row(std::initializer_list<std::string> cells, std::string_view tag = "td") {
  std::string out = "<tr>";
  for (const std::string& cell : cells) out += fmt::format("<{}>{}</{}>", tag, escape_html(cell), tag);
  return out + "</tr>";
}

std::string head(std::initializer_list<std::string_view> cells) {
  std::string out = "<table><tr>";
  for (const std::string_view cell : cells) out += fmt::format("<th>{}</th>", cell);
  return out + "</tr>";
}

std::string span_of(Timestamp from, const std::optional<Timestamp>& to) { return to ? format_duration(*to - from) : std::string(); }

std::string outcome(const model::Job& job, const Words& words) {
  std::string out = fmt::format("<h2>{}</h2><p><b>{}</b></p>", words.outcome, json::enum_name(job.state));
  if (!job.verdict) return out + fmt::format("<p>{}</p>", escape_html(job.reason));
  out += fmt::format("<p class=\"why\">{}<br><span class=\"dim\">{} · {}</span></p>", escape_html(job.verdict->message),
                     escape_html(job.verdict->cause), escape_html(job.verdict->decision));
  for (const model::Evidence& evidence : job.verdict->evidence) {
    out += fmt::format("<p class=\"dim\">{}</p><pre>{}</pre>", escape_html(evidence.source), escape_html(evidence.text));
  }
  return out;
}

std::string attempts_of(const std::vector<model::Attempt>& attempts, const Words& words) {
  std::string out = fmt::format("<h2>{}</h2>", words.attempts) + head({words.number, words.state, words.began, words.took, words.cause});
  for (const model::Attempt& attempt : attempts) {
    out += row({std::to_string(attempt.number), std::string(json::enum_name(attempt.state)), format_time(attempt.created),
                span_of(attempt.created, attempt.finished), attempt.verdict ? attempt.verdict->message : attempt.reason});
  }
  return out + "</table>";
}

std::string nodes_of(const std::vector<model::Node>& nodes, const model::Attempt& last, const Words& words) {
  std::string out = fmt::format("<h2>{}</h2>", words.nodes) + head({words.node, words.role, words.host, words.state, words.detail});
  for (const model::Node& node : nodes) {
    if (node.attempt != last.id) continue;
    out += row(
        {node.id.value, std::string(json::enum_name(node.role)), node.host.value, std::string(json::enum_name(node.state)), node.reason});
  }
  return out + "</table>";
}

std::string timeline_of(const model::Attempt& attempt, const Words& words) {
  std::vector<model::Mark> marks = attempt.marks;
  std::ranges::sort(marks, {}, &model::Mark::at);
  std::string out = fmt::format("<h2>{}</h2><table>", words.timeline);
  Timestamp before = attempt.created;
  for (const model::Mark& mark : marks) {
    out += row({mark.name, format_time(mark.at), "+" + format_duration(mark.at > before ? mark.at - before : Duration(0))});
    before = std::max(before, mark.at);
  }
  return out + "</table>";
}

Result<std::string> log_end(Context& context, const JobId& job, const Words& words) {
  std::string text;
  service::LogQuery query;
  query.offset = -kLogEnd;
  HELIO_TRY(reader, context.logs.open(job, query));
  auto state = service::LogReader::State::data;
  while (state == service::LogReader::State::data) {
    HELIO_TRY(next, reader->next(text));
    state = next;
  }
  std::string out = fmt::format("<h2>{}</h2>", words.log_end);
  if (text.empty()) return out + fmt::format("<p>{}</p>", words.no_log);
  return out + fmt::format("<pre>{}</pre><p><a href=\"/jobs/{}/log\">{}</a></p>", escape_html(text), job.value, words.whole_log);
}

}  // namespace

Result<net::Response> kept_record(Context& context, const JobId& id, const net::Request& request) {
  const Words& words = language_of(request) == Language::zh ? kChinese : kEnglish;
  HELIO_TRY(job, context.jobs.get(id));
  HELIO_TRY(attempts, context.jobs.attempts(id));
  HELIO_TRY(nodes, context.jobs.nodes(id));
  HELIO_TRY(log, log_end(context, id, words));
  Page page;
  page.language = language_of(request);
  page.title = job.spec.name + " · " + id.value;
  page.body = fmt::format("<h1>{} <span class=\"dim\">{}</span></h1><p>{}</p>", escape_html(job.spec.name), id.value, words.gone);
  page.body += outcome(job, words);
  if (!attempts.empty()) {
    page.body += attempts_of(attempts, words) + nodes_of(nodes, attempts.back(), words) + timeline_of(attempts.back(), words);
  }
  page.body += log;
  page.body +=
      fmt::format("<p class=\"dim\">{} <code>helio show {}</code>, <code>helio events {}</code>, <code>helio logs {} --node w1</code></p>",
                  words.more, id.value, id.value, id.value);
  return show(page);
}

}  // namespace helio::api
