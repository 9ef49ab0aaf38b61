#include "launcher/output/line_folder.h"

#include <bit>
#include <functional>

#include "launcher/output/lines.h"

namespace hvd {
LineFolder::LineFolder(uint32_t size, ShowFolded show)
    : size_(size),
      show_(std::move(show)),
      words_((size + 63) / 64),
      partial_(size),
      last_group_(size),
      recent_(size) {}

void LineFolder::Add(uint32_t rank, std::string_view bytes, TimePoint now) {
  std::string& partial = partial_[rank];
  bool returns = bytes.find('\r') != std::string_view::npos;
  while (!bytes.empty()) {
    size_t length = LineLength(bytes, returns);
    if (!partial.empty() || length == 0) {
      partial.append(bytes, 0, length == 0 ? bytes.size() : length);
      if (length > 0 || partial.size() >= kMaxLineBytes) {
        AddPartial(rank, now);
      } else {
        partial_since_.try_emplace(rank, now);
      }
    } else {
      AddLine(rank, bytes.substr(0, length), now);
    }
    if (length == 0) break;
    bytes.remove_prefix(length);
  }
  ShowReady(now);
}

void LineFolder::AddPartial(uint32_t rank, TimePoint now) {
  AddLine(rank, partial_[rank], now);
  partial_[rank].clear();
  partial_since_.erase(rank);
}

void LineFolder::AddLine(uint32_t rank, std::string_view line, TimePoint now) {
  if (table_.empty()) table_.resize(kBuckets * kWays);
  uint64_t hash = std::hash<std::string_view>()(line);
  auto tag = static_cast<uint32_t>(hash >> 32);
  Place* bucket = &table_[hash % kBuckets * kWays];
  uint64_t last = LastEqual(bucket, tag, line);
  uint64_t number = FirstAfter(rank, last, hash);
  if (number == kNone) {
    number = MakeGroup(line, now);
    if (last != kNone) group(last).later_equal = number;
    group(number).earlier_equal = last;
    Note(bucket, tag, number);
  }
  rank_sets_[(head_ + (number - first_)) * words_ + rank / 64] |= uint64_t{1} << (rank % 64);
  ++group(number).count;
  last_group_[rank] = number;
  recent_[rank][hash % kRecent] = {hash, number};
}

// The last held line with this text, or kNone.
uint64_t LineFolder::LastEqual(const Place* bucket, uint32_t tag, std::string_view line) const {
  for (size_t way = 0; way < kWays; ++way) {
    if (bucket[way].tag != tag) continue;
    uint64_t number = first_ + (bucket[way].number - static_cast<uint32_t>(first_));
    if (Waits(number) && TextOf(group(number)) == line) return number;
  }
  return kNone;
}

// The first line with this text that the rank may still join, or kNone.
uint64_t LineFolder::FirstAfter(uint32_t rank, uint64_t last_equal, uint64_t hash) const {
  if (last_equal == kNone || last_equal <= last_group_[rank]) return kNone;
  const Recent& recent = recent_[rank][hash % kRecent];
  if (recent.hash == hash && Waits(recent.number) &&
      TextOf(group(recent.number)) == TextOf(group(last_equal))) {
    uint64_t number = recent.number;
    while (number <= last_group_[rank]) number = group(number).later_equal;
    return number;
  }
  uint64_t number = last_equal;
  while (true) {
    uint64_t earlier = group(number).earlier_equal;
    if (!Waits(earlier) || earlier <= last_group_[rank]) return number;
    number = earlier;
  }
}

uint64_t LineFolder::MakeGroup(std::string_view line, TimePoint now) {
  groups_.push_back(
      {text_begins_ + text_.size(), static_cast<uint32_t>(line.size()), 0, kNone, kNone, now});
  for (size_t word = 0; word < words_; ++word) rank_sets_.push_back(0);
  text_ += line;
  held_bytes_ += line.size();
  return first_ + waiting() - 1;
}

// Replaces the entry of the last line with the same text, else the oldest; lines that are no longer
// found are shown unfolded.
void LineFolder::Note(Place* bucket, uint32_t tag, uint64_t number) {
  auto low = static_cast<uint32_t>(number);
  auto last = static_cast<uint32_t>(group(number).earlier_equal);
  Place* taken = bucket;
  for (size_t way = 0; way < kWays; ++way) {
    if (last != kNone && bucket[way].number == last) {
      taken = &bucket[way];
      break;
    }
    if (low - bucket[way].number > low - taken->number) taken = &bucket[way];
  }
  *taken = {tag, low};
}

void LineFolder::ShowFirst() {
  const Group& shown = groups_[head_];
  shown_ranks_.clear();
  for (size_t word = 0; word < words_; ++word) {
    for (uint64_t set = rank_sets_[head_ * words_ + word]; set != 0; set &= set - 1) {
      shown_ranks_.push_back(static_cast<uint32_t>(word * 64) +
                             static_cast<uint32_t>(std::countr_zero(set)));
    }
  }
  show_(shown_ranks_, TextOf(shown));
  held_bytes_ -= shown.length;
  ++head_;
  ++first_;
  if (waiting() == 0 || head_ > kMaxHeldLines || text_.size() - held_bytes_ > kMaxHeldBytes)
    DropShown();
}

void LineFolder::DropShown() {
  groups_.erase(groups_.begin(), groups_.begin() + static_cast<ptrdiff_t>(head_));
  rank_sets_.erase(rank_sets_.begin(), rank_sets_.begin() + static_cast<ptrdiff_t>(head_ * words_));
  head_ = 0;
  size_t over = text_.size() - held_bytes_;
  text_.erase(0, over);
  text_begins_ += over;
}

void LineFolder::ShowReady(TimePoint now) {
  while (waiting() > 0) {
    const Group& first = groups_[head_];
    bool full = held_bytes_ > kMaxHeldBytes || waiting() > kMaxHeldLines;
    if (first.count < size_ && first.since + kFoldWait > now && !full) return;
    ShowFirst();
  }
}

std::optional<TimePoint> LineFolder::deadline() const {
  std::optional<TimePoint> first;
  if (waiting() > 0) first = groups_[head_].since;
  for (const auto& [rank, since] : partial_since_) {
    if (!first || since < *first) first = since;
  }
  if (!first) return std::nullopt;
  return *first + kFoldWait;
}

void LineFolder::Due(TimePoint now) {
  for (auto next = partial_since_.begin(); next != partial_since_.end();) {
    const auto [rank, since] = *next++;
    if (since + kFoldWait <= now) AddPartial(rank, now);
  }
  ShowReady(now);
}

void LineFolder::Flush() {
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (!partial_[rank].empty()) AddPartial(rank, TimePoint{});
  }
  while (waiting() > 0) ShowFirst();
}

}  // namespace hvd
