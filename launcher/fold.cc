#include "launcher/fold.h"

#include <algorithm>
#include <utility>

namespace hvd {

std::string RankRanges(const std::set<uint32_t>& ranks) {
  std::string text;
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    uint32_t first = *rank, last = *rank;
    while (++rank != ranks.end() && *rank == last + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  return text;
}

std::vector<FoldedLine> Folder::Add(uint32_t rank, std::string_view bytes, TimePoint now) {
  std::string& partial = partial_[rank];
  while (!bytes.empty()) {
    size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      partial += bytes;
      if (partial.size() >= kMaxLineBytes) AddLine(rank, std::exchange(partial, {}), now);
      break;
    }
    if (bytes[end] == '\r' && end + 1 < bytes.size() && bytes[end + 1] == '\n') ++end;
    AddLine(rank, std::exchange(partial, {}).append(bytes.substr(0, end + 1)), now);
    bytes.remove_prefix(end + 1);
  }
  std::vector<FoldedLine> shown;
  ShowReady(now, shown);
  return shown;
}

void Folder::AddLine(uint32_t rank, std::string line, TimePoint now) {
  std::deque<uint64_t>& equals = by_line_[line];
  if (auto later = std::upper_bound(equals.begin(), equals.end(), last_group_[rank]);
      later != equals.end()) {
    groups_[*later - first_].ranks.insert(rank);
    last_group_[rank] = *later;
    return;
  }
  uint64_t number = first_ + groups_.size();
  equals.push_back(number);
  last_group_[rank] = number;
  held_bytes_ += line.size();
  groups_.push_back({std::move(line), {rank}, now});
}

void Folder::ShowFirst(std::vector<FoldedLine>& shown) {
  Group& group = groups_.front();
  auto equals = by_line_.find(group.line);
  equals->second.pop_front();
  if (equals->second.empty()) by_line_.erase(equals);
  held_bytes_ -= group.line.size();
  shown.push_back({RankRanges(group.ranks), std::move(group.line)});
  groups_.pop_front();
  ++first_;
}

void Folder::ShowReady(TimePoint now, std::vector<FoldedLine>& shown) {
  while (!groups_.empty()) {
    const Group& group = groups_.front();
    bool complete = group.ranks.size() == size_;
    if (!complete && group.since + kFoldWait > now && held_bytes_ <= kMaxHeldBytes) return;
    ShowFirst(shown);
  }
}

std::optional<TimePoint> Folder::deadline() const {
  if (groups_.empty()) return std::nullopt;
  return groups_.front().since + kFoldWait;
}

std::vector<FoldedLine> Folder::Due(TimePoint now) {
  std::vector<FoldedLine> shown;
  ShowReady(now, shown);
  return shown;
}

std::vector<FoldedLine> Folder::Flush() {
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (!partial_[rank].empty()) AddLine(rank, std::exchange(partial_[rank], {}), TimePoint{});
  }
  std::vector<FoldedLine> shown;
  while (!groups_.empty()) ShowFirst(shown);
  return shown;
}

}  // namespace hvd
