#include "launcher/live/metrics_text.h"

#include <functional>
#include <string_view>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// The value of a label, with backslash, quote and newline escaped.
std::string Label(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? "\\n" : std::string(1, c);
  }
  return escaped;
}

std::string Number(double value) { return Format("{:.17g}", value); }
std::string Number(uint64_t value) { return std::to_string(value); }

std::string Head(const char* name, const char* type, const char* help) {
  return std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

class Writer {
 public:
  explicit Writer(const JobView& view) : view_(view), job_("job_id=\"" + Label(view.job) + "\"") {}

  void OfJob(const char* name, const char* type, const char* help, const std::string& value) {
    text_ += Head(name, type, help) + name + "{" + job_ + "} " + value + "\n";
  }
  template <typename Value>
  void OfRanks(const char* name, const char* type, const char* help, Value value) {
    text_ += Head(name, type, help);
    for (const RankView& rank : view_.ranks) Sample(name, rank, "", Number(value(rank)));
  }
  void States() {
    constexpr const char* kName = "hvd_rank_state";
    text_ += Head(kName, "gauge", "1 for the state that the rank is in.");
    for (const RankView& rank : view_.ranks)
      Sample(kName, rank, ",state=\"" + Label(rank.state) + "\"", "1");
  }
  std::string Release() { return std::move(text_); }

 private:
  void Sample(const char* name, const RankView& rank, const std::string& more,
              const std::string& value) {
    text_ += Format("{}{{{},rank=\"{}\",host=\"{}\"{}}} {}\n", name, job_, rank.rank,
                    Label(rank.host), more, value);
  }

  const JobView& view_;
  const std::string job_;
  std::string text_;
};

}  // namespace

std::string MetricsText(const JobView& view) {
  Writer writer(view);
  writer.OfJob("hvd_generation", "gauge", "The generation of the job; 0 before all ranks joined.",
               Number(view.generation));
  writer.OfJob("hvd_ranks", "gauge", "Ranks of the job.", Number(uint64_t{view.size}));
  writer.States();
  writer.OfRanks("hvd_operations_total", "counter",
                 "Collectives that ended without an error in this generation.",
                 [](const RankView& r) { return r.operations; });
  writer.OfRanks("hvd_bytes_total", "counter", "Bytes of the tensors of these collectives.",
                 [](const RankView& r) { return r.bytes; });
  writer.OfRanks("hvd_wait_seconds_total", "counter",
                 "Time in which the program of the rank waited for a collective.",
                 [](const RankView& r) { return r.waited_seconds; });
  writer.OfRanks("hvd_rank_last_total", "counter",
                 "Collectives of which the rank was the last one of its host to submit.",
                 [](const RankView& r) { return r.last; });
  writer.OfRanks("hvd_steps_total", "counter", "Steps of the optimizer.",
                 [](const RankView& r) { return r.steps; });
  writer.OfRanks("hvd_commits_total", "counter", "Commits of elastic state.",
                 [](const RankView& r) { return r.commits; });
  return writer.Release();
}

}  // namespace hvd
