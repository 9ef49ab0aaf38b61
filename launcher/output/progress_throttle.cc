#include "launcher/output/progress_throttle.h"

#include <algorithm>

namespace hvd {

ProgressThrottle::ProgressThrottle(uint32_t size, int per_second, bool one_bar, Pass pass,
                                   Drop drop)
    : between_(per_second > 0 ? Duration(std::chrono::seconds(1)) / per_second : Duration::zero()),
      one_bar_(one_bar),
      pass_(std::move(pass)),
      drop_(std::move(drop)),
      ranks_(between_ > Duration::zero() ? size : 0) {}

void ProgressThrottle::Add(uint32_t rank, std::string_view bytes, TimePoint now) {
  if (between_ == Duration::zero()) return pass_(rank, bytes);
  while (!bytes.empty()) {
    size_t at = bytes.find('\r');
    bool pair = at != std::string_view::npos && at + 1 < bytes.size() && bytes[at + 1] == '\n';
    // An update begins after the last line end before its "\r".
    size_t line = at == std::string_view::npos ? bytes.size() : bytes.rfind('\n', at) + 1;
    if (pair) line = at + 2;
    if (line > 0) {
      PassHeld(rank);
      pass_(rank, bytes.substr(0, line));
      ranks_[rank].open = bytes[line - 1] != '\n';
      if (bar_ == rank && !ranks_[rank].open) bar_.reset();
      bytes.remove_prefix(line);
      continue;
    }
    std::string_view update = bytes.substr(0, at + 1);
    bytes.remove_prefix(at + 1);
    if (!HasBar(rank, now)) {
      DropHeld(rank);
      ranks_[rank].held = update;
    } else if (ranks_[rank].open || MayShow(ranks_[rank], now)) {
      DropHeld(rank);
      ShowUpdate(rank, update, now);
    } else {
      Hold(rank, update);
    }
  }
}

void ProgressThrottle::DropHeld(uint32_t rank) {
  if (!ranks_[rank].held.empty()) drop_(rank, ranks_[rank].held.size());
}

void ProgressThrottle::ShowUpdate(uint32_t rank, std::string_view update, TimePoint now) {
  Rank& r = ranks_[rank];
  if (!r.held.empty()) {  // it was replaced
    held_.erase({DueOf(r), rank});
    r.held.clear();
  }
  r.open = false;
  bar_ = rank;
  bar_shown_ = now;
  r.spent_until = std::max(r.spent_until, now) + between_;
  pass_(rank, update);
}

void ProgressThrottle::Hold(uint32_t rank, std::string_view update) {
  Rank& r = ranks_[rank];
  DropHeld(rank);
  held_.insert({DueOf(r), rank});
  r.held = update;
}

void ProgressThrottle::PassHeld(uint32_t rank) {
  Rank& r = ranks_[rank];
  if (r.held.empty()) return;
  held_.erase({DueOf(r), rank});
  pass_(rank, std::exchange(r.held, {}));
}

std::optional<TimePoint> ProgressThrottle::deadline() const {
  if (held_.empty()) return std::nullopt;
  return held_.begin()->first;
}

void ProgressThrottle::Due(TimePoint now) {
  while (!held_.empty() && held_.begin()->first <= now) {
    uint32_t rank = held_.begin()->second;
    std::string update = ranks_[rank].held;
    ShowUpdate(rank, update, now);
  }
}

void ProgressThrottle::Flush() {
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) PassHeld(rank);
}

}  // namespace hvd
