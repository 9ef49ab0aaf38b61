#include "launcher/live/view_table.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "configs/message_text.h"
#include "launcher/output/text/columns.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/quantile.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kPlain = "\x1b[0m";
constexpr size_t kMostHostColumns = 24;

std::string Percent(double share) { return Format("{:.0f} %", share * 100); }

std::string Padded(std::string text, size_t columns) {
  text = CutToColumns(text, columns);
  const size_t has = ColumnsOf(text);
  return text + std::string(columns - std::min(columns, has), ' ');
}

// Nothing where no rank has rates.
std::optional<double> MedianOf(const JobView& view, double RankRates::*member) {
  std::vector<double> values;
  for (const RankView& rank : view.ranks) {
    if (rank.rates) values.push_back((*rank.rates).*member);
  }
  if (values.empty()) return std::nullopt;
  return Median(std::move(values));
}

std::string StragglerText(const Straggler& straggler) {
  return Format("the other ranks wait for rank {}: it waits {} of the time, the others {}",
                straggler.rank, Percent(straggler.waits), Percent(straggler.others_wait));
}

std::string Rate(const RankView& rank, double RankRates::*member) {
  return rank.rates ? ScaledText((*rank.rates).*member) : "-";
}

std::string RankLine(const RankView& rank, size_t host_columns) {
  const bool steps = rank.steps > 0 || (rank.rates && rank.rates->steps > 0);
  std::string line =
      Format("{:5}  {}  ", rank.rank, Padded(Printable(rank.host, kMaxShown), host_columns));
  line += Format("{:<9}  {:>8}  {:>8}  {:>8}B  {:>7}  {:>6}  ", rank.state,
                 steps ? Rate(rank, &RankRates::steps) : "-", Rate(rank, &RankRates::operations),
                 Rate(rank, &RankRates::bytes), rank.rates ? Percent(rank.rates->waiting) : "-",
                 rank.rates ? Percent(rank.rates->last) : "-");
  if (!rank.last_submitted.empty()) line += rank.collective + " " + Printable(rank.last_submitted);
  return line;
}

std::string Fit(const std::string& line, size_t columns) {
  return columns == 0 ? line : CutToColumns(line, columns);
}

}  // namespace

std::string ScaledText(double value) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return Format("{:.{}f} {}", value, value == 0 ? 0 : digits, kUnits[unit]);
}

std::string ViewSummary(const JobView& view) {
  std::string text = Counted(view.ranks.size(), "rank", "ranks");
  if (view.generation > 1) text += Format(", generation {}", view.generation);
  const auto add = [&](double RankRates::*member, const char* unit) {
    if (const auto value = MedianOf(view, member)) text += ", " + ScaledText(*value) + unit;
  };
  if (MedianOf(view, &RankRates::steps).value_or(0) > 0) add(&RankRates::steps, "steps/s");
  add(&RankRates::operations, "operations/s");
  add(&RankRates::bytes, "B/s");
  if (const auto waiting = MedianOf(view, &RankRates::waiting))
    text += ", waiting " + Percent(*waiting);
  if (view.straggler) text += ", " + StragglerText(*view.straggler);
  return text;
}

std::string ViewTable(const JobView& view, TableSize size, bool colours) {
  std::set<std::string> hosts;
  size_t host_columns = 4;
  for (const RankView& rank : view.ranks) {
    hosts.insert(rank.host);
    host_columns = std::clamp(ColumnsOf(rank.host), host_columns, kMostHostColumns);
  }
  const auto coloured = [&](const char* colour, const std::string& line) {
    return (colours ? colour + line + kPlain : line) + "\n";
  };
  std::string text =
      coloured(kBold, Fit(Format("job {}   generation {}   {} on {}", view.job, view.generation,
                                 Counted(view.ranks.size(), "rank", "ranks"),
                                 Counted(hosts.size(), "host", "hosts")),
                          size.columns));
  text += Fit(view.straggler ? StragglerText(*view.straggler) : "no rank holds up the others",
              size.columns) +
          "\n\n";
  text += coloured(kBold, Fit(" RANK  " + Padded("HOST", host_columns) +
                                  "  STATE       STEPS/S     OPS/S    BYTES/S  WAITING    LAST  "
                                  "LAST COLLECTIVE",
                              size.columns));
  constexpr size_t kOtherLines = 5;
  const size_t room = size.lines > kOtherLines ? size.lines - kOtherLines : 1;
  const size_t shown = size.lines == 0 || view.ranks.size() <= room ? view.ranks.size() : room - 1;
  for (size_t i = 0; i < shown; ++i) {
    const RankView& rank = view.ranks[i];
    const std::string line = Fit(RankLine(rank, host_columns), size.columns);
    const bool slow = view.straggler && view.straggler->rank == rank.rank;
    text += slow ? coloured(kRed, line) : line + "\n";
  }
  if (shown < view.ranks.size())
    text += Format("and {} more; --json shows all\n", view.ranks.size() - shown);
  return text;
}

}  // namespace hvd
