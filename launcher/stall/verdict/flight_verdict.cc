#include "launcher/stall/verdict/flight_verdict.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "configs/message_text.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kMostFindings = 4;
constexpr size_t kMostVariantsNamed = 4;
constexpr const char* kIntroduction = "  PyTorch's flight recorder: ";

using RankSet = std::set<uint32_t>;

std::string ListOf(const RankSet& ranks) {
  const std::vector<uint32_t> numbers(ranks.begin(), ranks.end());
  return (numbers.size() == 1 ? "rank " : "ranks ") + RankRanges(numbers);
}

// A group of torch.distributed, as the ranks of one dump each have recorded it.
struct RecordedGroup {
  std::string name, description;
  RankSet members;  // those that are known
  std::map<uint32_t, const FlightGroup*> recorded;
};

std::string NameOf(const RecordedGroup& group) {
  if (group.description == "default_pg") return "the default group";
  const bool described = !group.description.empty() && group.description != "undefined";
  return "group " + Printable(described ? group.description : group.name, 60);
}

// All entries of a rank with one number: a coalesced collective has several.
using Entries = std::vector<const FlightEntry*>;

Entries EntriesOf(const FlightGroup& group, uint64_t number) {
  Entries entries;
  for (const FlightEntry& entry : group.entries) {
    if (entry.is_message == 0 && entry.number == number) entries.push_back(&entry);
  }
  return entries;
}

std::string TextOf(const FlightEntry& entry) {
  std::string text = Printable(entry.operation, 60);
  if (!entry.tensors.empty()) text += " of " + Printable(entry.tensors, 200);
  return text;
}

std::string TextOf(const Entries& entries) {
  if (entries.empty()) return "an operation that its recorder has overwritten";
  std::string text = TextOf(*entries[0]);
  if (entries.size() > 1) text += Format(" and {} more", entries.size() - 1);
  return text;
}

bool IsAnyOf(std::string_view name, auto... names) { return ((name == names) || ...); }

// What must be equal on all ranks besides the operation: element counts rather than shapes, because
// libraries check nothing else.
std::string Measure(const FlightEntry& entry) {
  const std::string_view name = entry.operation;
  const bool differs = IsAnyOf(name, "gather", "scatter", "barrier", "all_reduce_barrier", "send",
                               "recv", "split") ||
                       name.starts_with("all_to_all") || name.starts_with("alltoall") ||
                       name.find("_v") != name.npos || name.find("coalesced") != name.npos;
  if (differs) return "";
  // The parts of all_gather may differ; their total is the same.
  const bool by_output = name.find("gather") != name.npos;
  return Format("{} {}", entry.type, by_output ? entry.outputs : entry.inputs);
}

std::string Operations(const Entries& entries) {
  std::string text;
  for (const FlightEntry* entry : entries) text += entry->operation + "\n";
  return text;
}

std::string Measures(const Entries& entries) {
  std::string text;
  for (const FlightEntry* entry : entries) text += Measure(*entry) + "\n";
  return text;
}

// Nothing: everything that a rank has enqueued has ended.
std::optional<uint64_t> FirstOpen(const RecordedGroup& group) {
  std::optional<uint64_t> first;
  for (const auto& [rank, recorded] : group.recorded) {
    for (const FlightEntry& entry : recorded->entries) {
      if (entry.is_message == 0 && entry.state != FlightState::kCompleted)
        first = std::min(first.value_or(entry.number), entry.number);
    }
  }
  return first;
}

struct Finding {
  int order = 0;  // most informative first
  std::string line;
};

// "all_reduce of Float [4] on ranks 0-1, broadcast of Float [4] on rank 2"
std::string Variants(const std::map<uint32_t, Entries>& by_rank) {
  std::vector<std::pair<std::string, RankSet>> variants;
  for (const auto& [rank, entries] : by_rank) {
    if (entries.empty()) continue;
    const std::string text = TextOf(entries);
    auto found = std::ranges::find(variants, text, &std::pair<std::string, RankSet>::first);
    if (found == variants.end()) found = variants.insert(variants.end(), {text, {}});
    found->second.insert(rank);
  }
  std::string text;
  for (size_t i = 0; i < std::min(variants.size(), kMostVariantsNamed); ++i)
    text += (i == 0 ? "" : ", ") + variants[i].first + " on " + ListOf(variants[i].second);
  if (variants.size() > kMostVariantsNamed)
    text += Format(" and {} more", variants.size() - kMostVariantsNamed);
  return text;
}

bool Differ(const std::map<uint32_t, Entries>& by_rank, std::string (*property)(const Entries&)) {
  std::set<std::string> values;
  for (const auto& [rank, entries] : by_rank) {
    if (!entries.empty()) values.insert(property(entries));
  }
  return values.size() > 1;
}

// ", whose last one is number 16, broadcast of Float [4]"
std::string LastOf(const RecordedGroup& group, const RankSet& absent) {
  std::set<std::string> texts;
  for (uint32_t rank : absent) {
    const auto found = group.recorded.find(rank);
    const uint64_t last = found == group.recorded.end() ? 0 : found->second->last;
    if (last == 0) {
      texts.insert("none");
    } else {
      texts.insert(Format("number {}, {}", last, TextOf(EntriesOf(*found->second, last))));
    }
  }
  if (texts.size() != 1) return "";
  return *texts.begin() == "none" ? ", which has enqueued none in it"
                                  : ", whose last one is " + *texts.begin();
}

std::string Started(const RecordedGroup& group, uint64_t number) {
  RankSet started, waiting;
  for (const auto& [rank, recorded] : group.recorded) {
    for (const FlightEntry* entry : EntriesOf(*recorded, number)) {
      if (entry->state == FlightState::kScheduled) waiting.insert(rank);
      if (entry->state == FlightState::kStarted) started.insert(rank);
    }
  }
  if (started.empty() || waiting.empty()) return "";
  return Format("; it has started on {} and not on {}", ListOf(started), ListOf(waiting));
}

std::optional<Finding> ExplainCollective(const RecordedGroup& group, const RankSet& dumped) {
  const std::optional<uint64_t> number = FirstOpen(group);
  if (!number) return std::nullopt;
  std::map<uint32_t, Entries> enqueued;
  RankSet absent, unknown, present;
  for (uint32_t rank : group.members) {
    const auto found = group.recorded.find(rank);
    if (!dumped.contains(rank)) {
      unknown.insert(rank);
    } else if (found == group.recorded.end() || found->second->last < *number) {
      absent.insert(rank);
    } else {
      enqueued[rank] = EntriesOf(*found->second, *number);
      present.insert(rank);
    }
  }
  const bool operations = Differ(enqueued, Operations), shapes = Differ(enqueued, Measures);
  Finding finding;
  if (operations || shapes) {
    finding.line =
        Format("ranks have enqueued different {} as collective {} of {}: {}",
               operations ? "operations" : "shapes", *number, NameOf(group), Variants(enqueued));
    if (!absent.empty()) finding.line += Format("; {} none", ListOf(absent));
  } else {
    const auto known =
        std::ranges::find_if(enqueued, [](const auto& e) { return !e.second.empty(); });
    const std::string what = known == enqueued.end() ? "" : ", " + TextOf(known->second);
    finding.line = Format("collective {} of {}{}, was enqueued by {}", *number, NameOf(group), what,
                          ListOf(present));
    if (absent.empty() && unknown.empty()) {
      finding.order = 2;
      finding.line += ", which are all" + Started(group, *number);
    } else if (absent.empty()) {
      finding.order = 1;
      finding.line += Started(group, *number);
    } else {
      finding.line += " and not by " + ListOf(absent) + LastOf(group, absent);
    }
  }
  if (!unknown.empty()) finding.line += Format("; there is no dump of {}", ListOf(unknown));
  return finding;
}

// Explains the first unfinished entry of each rank.
std::optional<Finding> ExplainMessages(const RecordedGroup& group) {
  Finding finding{3, ""};
  size_t count = 0;
  for (const auto& [rank, recorded] : group.recorded) {
    for (const FlightEntry& entry : recorded->entries) {
      if (entry.is_message == 0 || entry.state == FlightState::kCompleted) continue;
      if (++count <= kMostVariantsNamed)
        finding.line += Format("{}{} (number {}) on rank {}", count == 1 ? "" : ", ", TextOf(entry),
                               entry.number, rank);
      break;
    }
  }
  if (count == 0) return std::nullopt;
  if (count > kMostVariantsNamed)
    finding.line += Format(" and {} more", count - kMostVariantsNamed);
  finding.line = Format("messages in {} that have not ended: {}", NameOf(group), finding.line);
  return finding;
}

}  // namespace

std::string KeyOf(const FlightGroup& group) {
  return Format("{}\n{}\n{}", group.name, group.description, RankRanges(group.ranks));
}

std::map<std::string, uint64_t> OpenCollectives(const std::vector<FlightRecord>& records) {
  std::map<std::string, uint64_t> open;
  for (const FlightRecord& record : records) {
    for (const FlightGroup& group : record.groups) {
      RecordedGroup alone;
      alone.recorded[record.rank] = &group;
      const std::optional<uint64_t> first = FirstOpen(alone);
      if (!first) continue;
      uint64_t& number = open.try_emplace(KeyOf(group), *first).first->second;
      number = std::min(number, *first);
    }
  }
  return open;
}

std::string ExplainFlight(const std::vector<FlightRecord>& records, uint32_t size) {
  RankSet dumped;
  // Groups of different ranks may have the same name.
  std::map<std::tuple<std::string, std::string, std::vector<uint32_t>>, RecordedGroup> groups;
  for (const FlightRecord& record : records) {
    if (!record.trouble.empty()) continue;
    dumped.insert(record.rank);
    for (const FlightGroup& recorded : record.groups) {
      RecordedGroup& group = groups[{recorded.name, recorded.description, recorded.ranks}];
      group.name = recorded.name;
      group.description = recorded.description;
      group.members.insert(record.rank);
      group.members.insert(recorded.ranks.begin(), recorded.ranks.end());
      group.recorded[record.rank] = &recorded;
      if (recorded.description == "default_pg" && recorded.ranks.empty()) {
        for (uint32_t rank = 0; rank < size; ++rank) group.members.insert(rank);
      }
    }
  }
  std::vector<Finding> findings;
  for (const auto& [key, group] : groups) {
    std::optional<Finding> found = ExplainCollective(group, dumped);
    if (!found) found = ExplainMessages(group);
    if (found) findings.push_back(std::move(*found));
  }
  std::ranges::stable_sort(findings, {}, &Finding::order);
  std::string lines;
  for (size_t i = 0; i < std::min(findings.size(), kMostFindings); ++i)
    lines += kIntroduction + findings[i].line + ".\n";
  if (findings.size() > kMostFindings)
    lines += Format("{}and {} more groups wait.\n", kIntroduction, findings.size() - kMostFindings);
  return lines;
}

}  // namespace hvd
