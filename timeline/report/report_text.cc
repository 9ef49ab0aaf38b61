#include <algorithm>
#include <vector>

#include "runtime/base/text/format.h"
#include "runtime/trace/chrome_text.h"
#include "timeline/report/quantities.h"
#include "timeline/report/report_output.h"

namespace hvd {
namespace {

constexpr size_t kShownTensors = 10, kShownRanks = 64, kShownLinks = 16, kShownActivities = 16,
                 kLineWidth = 100, kMostName = 60;
using Table = std::vector<std::vector<std::string>>;

// A name made safe for a terminal.
std::string Shown(const std::string& name) {
  const std::string text = JsonText(name, kMostName);
  return text.substr(1, text.size() - 2);
}

// Characters of UTF-8.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

// The first column left-aligned, the others right-aligned.
std::string TableText(const Table& table) {
  std::vector<size_t> widths;
  for (const auto& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : table) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - Width(row[i]), ' ');
      line += i == 0 ? " " + row[i] + space : "  " + space + row[i];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

// Wraps text into indented lines.
std::string Wrapped(const std::string& sentence, const std::string& first,
                    const std::string& indent) {
  std::string text, line = first;
  for (size_t at = 0; at < sentence.size();) {
    const size_t end = std::min(sentence.find(' ', at), sentence.size());
    const std::string word = sentence.substr(at, end - at);
    if (Width(line) + 1 + Width(word) > kLineWidth && line.size() > indent.size()) {
      text += line + "\n";
      line = indent;
    }
    if (!line.empty() && line.back() != ' ') line += ' ';
    line += word;
    at = end + 1;
  }
  return text + line + "\n";
}

std::string HeadText(const Report& report) {
  std::string text = Shown(report.path) + ": " + CountText(report.ranks.size(), "rank", "ranks");
  if (report.hosts.size() > 1) text += Format(" on {} hosts", report.hosts.size());
  text += ", " + TimeText(report.time_ns) + ", ";
  if (report.steps > 0) {
    text += CountText(report.steps, "step", "steps") + " of " + TimeText(report.median_step_ns) +
            " with " + CountText(report.tensors_per_step, "tensor", "tensors") + " (" +
            BytesText(static_cast<double>(report.bytes_per_step)) + ")";
  } else {
    text += "no steps: no name of a tensor comes back";
  }
  return text + ", " + CountText(report.lost_records, "record", "records") + " lost\n";
}

std::string RanksText(const Report& report) {
  Table table = {{"rank", "step", "slow step", "waits", "communicates", "hidden", "negotiates",
                  "last for", "others lose"}};
  for (const RankReport& rank : report.ranks) {
    if (table.size() > kShownRanks) break;
    const double share = rank.time_ns > 0 ? static_cast<double>(rank.lost_by_others_ns) /
                                                static_cast<double>(rank.time_ns)
                                          : 0;
    table.push_back({Shown(rank.label), TimeText(rank.median_step_ns), TimeText(rank.slow_step_ns),
                     ShareText(rank.wait_share), ShareText(rank.communication_share),
                     ShareText(rank.hidden_share), ShareText(rank.negotiation_share),
                     ShareText(rank.last_share), ShareText(share)});
  }
  std::string text = "\nRanks\n" + TableText(table);
  if (report.ranks.size() > kShownRanks)
    text += Format("  and {} more; see --json\n", report.ranks.size() - kShownRanks);
  return text;
}

std::string TensorsText(const Report& report) {
  if (report.tensors.empty()) return "";
  Table table = {{"tensor", "operations", "bytes", "in flight", "in all", "late"}};
  for (const TensorReport& tensor : report.tensors) {
    if (table.size() > kShownTensors) break;
    int64_t late = 0;
    for (int64_t of_rank : tensor.late_ns) late += of_rank;
    table.push_back({Shown(tensor.name), std::to_string(tensor.operations),
                     BytesText(static_cast<double>(tensor.bytes)), TimeText(tensor.in_flight_ns),
                     TimeText(tensor.total_ns), TimeText(late)});
  }
  return Format("\nTensors that take longest, of {}\n{}", report.tensors_in_all, TableText(table));
}

std::string SizesText(const Report& report) {
  if (report.sizes.empty()) return "";
  Table table = {{"size", "operations", "bytes", "median", "speed"}};
  for (const SizeReport& size : report.sizes) {
    const std::string least = BytesText(static_cast<double>(size.least_bytes));
    table.push_back({least + " - " + BytesText(static_cast<double>(size.most_bytes)),
                     std::to_string(size.operations), BytesText(static_cast<double>(size.bytes)),
                     TimeText(size.median_ns), RateText(size.bytes_per_second)});
  }
  return "\nSpeed by size\n" + TableText(table);
}

std::string ActivitiesText(const Report& report) {
  if (report.activities.empty()) return "";
  Table table = {{"activity", "times", "bytes", "mean", "in all"}};
  for (const ActivityReport& activity : report.activities) {
    if (table.size() > kShownActivities) break;
    table.push_back({Shown(activity.name), std::to_string(activity.times),
                     BytesText(static_cast<double>(activity.bytes)), TimeText(activity.mean_ns),
                     TimeText(activity.total_ns)});
  }
  return "\nInside of operations, over all ranks\n" + TableText(table);
}

std::string HostsText(const Report& report) {
  if (report.hosts.size() < 2) return "";
  Table table = {{"host", "ranks", "results come later by", "speed of large tensors"}};
  for (const HostSpeed& host : report.hosts) {
    table.push_back({Shown(host.name), std::to_string(host.ranks), TimeText(host.behind_ns),
                     RateText(host.bytes_per_second)});
  }
  return "\nHosts\n" + TableText(table);
}

// The slowest first.
std::string LinksText(const Report& report) {
  if (report.links.empty()) return "";
  std::vector<LinkReport> links = report.links;
  std::sort(links.begin(), links.end(), [](const LinkReport& a, const LinkReport& b) {
    return a.bytes_per_second < b.bytes_per_second;
  });
  Table table = {{"from host", "to host", "bytes", "speed while sending"}};
  for (const LinkReport& link : links) {
    if (table.size() > kShownLinks) break;
    table.push_back({Shown(report.hosts[link.from].name), Shown(report.hosts[link.to].name),
                     BytesText(static_cast<double>(link.bytes)), RateText(link.bytes_per_second)});
  }
  const std::string slowest = links.size() > kShownLinks ? ", slowest first" : "";
  return "\nLinks between hosts" + slowest + "\n" + TableText(table);
}

}  // namespace

std::string ReportText(const Report& report) {
  std::string text = HeadText(report) + "\nWhat limits the job\n";
  for (size_t i = 0; i < report.findings.size(); ++i) {
    const std::string number = Format("  {}. ", i + 1);
    std::string sentence;
    for (char c : report.findings[i].sentence) sentence += c == '\n' ? ' ' : c;
    text += Wrapped(sentence, number, "     ");
  }
  return text + RanksText(report) + TensorsText(report) + SizesText(report) +
         ActivitiesText(report) + HostsText(report) + LinksText(report);
}

}  // namespace hvd
