#include "launcher/live/stacks_text.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/printable_text.h"
#include "runtime/trace/chrome_text.h"

namespace hvd {
namespace {

constexpr size_t kMostLine = 1000;  // the end of a frame contains the line number

// "Thread 12 (idle): \"MainThread\"" without the number; drops "Process ..." and "Python v...". A C
// frame without a name is "?? (libc.so.6)": its address differs between processes.
std::string Comparable(const std::string& text) {
  std::istringstream lines(text);
  std::string kept, line;
  while (std::getline(lines, line)) {
    if (line.empty() || line.starts_with("Process ") || line.starts_with("Python v")) continue;
    if (line.starts_with("Thread ")) {
      const size_t number = std::string("Thread ").size();
      line.erase(number,
                 std::min(line.find_first_not_of("0123456789abcdefxABCDEF", number), line.size()) -
                     number);
      line.erase(line.find_last_not_of(' ') + 1);
      if (const size_t two = line.find("  "); two != std::string::npos) line.erase(two, 1);
    }
    if (const size_t begin = line.find_first_not_of(' '); line.find("0x", begin) == begin)
      line.replace(begin, line.find_first_not_of("0123456789abcdefxABCDEF", begin) - begin, "??");
    kept += "  " + Printable(line, kMostLine) + "\n";
  }
  return kept;
}

struct Group {
  std::vector<uint32_t> ranks;
  std::vector<std::string> hosts;
  std::string text, reason;
};

void Add(Group* group, const RankStacks& stacks) {
  group->ranks.push_back(stacks.rank);
  if (std::ranges::find(group->hosts, stacks.host) == group->hosts.end())
    group->hosts.push_back(stacks.host);
}

std::string Heading(const Group& group) {
  std::string hosts;
  for (const std::string& host : group.hosts) hosts += (hosts.empty() ? "" : ", ") + host;
  return (group.ranks.size() == 1 ? "rank " : "ranks ") + RankRanges(group.ranks) +
         (group.hosts.size() == 1 ? " on host " : " on hosts ") + hosts +
         (group.reason.empty() ? ":\n" : ": no stacks; " + group.reason + "\n") + group.text;
}

}  // namespace

std::string StacksText(std::vector<RankStacks> ranks) {
  std::ranges::sort(ranks, {}, &RankStacks::rank);
  std::vector<Group> groups;
  for (const RankStacks& stacks : ranks) {
    const std::string text = Comparable(stacks.text);
    auto equal = std::ranges::find_if(groups, [&](const Group& group) {
      return group.text == text && group.reason == stacks.reason;
    });
    if (equal == groups.end()) equal = groups.insert(equal, {{}, {}, text, stacks.reason});
    Add(&*equal, stacks);
  }
  std::string all;
  for (const Group& group : groups) all += Heading(group);
  return all;
}

std::string StacksJson(const std::vector<RankStacks>& ranks) {
  const auto text_or_null = [](const std::string& text) {
    constexpr size_t kWhole = SIZE_MAX;
    return text.empty() ? "null" : JsonText(text, kWhole);
  };
  std::string list;
  for (const RankStacks& stacks : ranks) {
    list += (list.empty() ? "[" : ",\n ") +
            Format(R"({{"rank": {}, "host": {}, "stacks": {}, "reason": {}}})", stacks.rank,
                   JsonText(stacks.host), text_or_null(stacks.text), text_or_null(stacks.reason));
  }
  return (list.empty() ? "[" : list) + "]\n";
}

}  // namespace hvd
