#include "launcher/output/line_keeper.h"

#include <algorithm>
#include <utility>

namespace hvd {
namespace {

// An update of a progress bar ends with "\r".
bool LeavesLineOpen(std::string_view bytes) { return bytes.back() != '\n' && bytes.back() != '\r'; }

}  // namespace

void LineKeeper::Add(const Show& show, std::span<const uint32_t> ranks, std::string_view bytes,
                     TimePoint now) {
  if (bytes.empty() || ranks.empty()) return;
  now_ = now;
  const Writer writer{&show, ranks.front()};
  if (!inside_ || *inside_ == writer) {
    ShowPiece(writer, ranks, bytes);
    return ShowHeld();
  }
  if (held_.empty()) waiting_since_ = now;
  held_of_[writer].push_back(next_);
  held_.emplace(next_++, Piece{writer, {ranks.begin(), ranks.end()}, std::string(bytes)});
  held_bytes_ += bytes.size();
  if (held_bytes_ > kMostHeld) LeaveLine();
}

void LineKeeper::ShowPiece(const Writer& writer, std::span<const uint32_t> ranks,
                           std::string_view bytes) {
  (*writer.show)(ranks, bytes);
  const bool was_inside = inside_.has_value();
  inside_ = LeavesLineOpen(bytes) ? std::optional(writer) : std::nullopt;
  touched_ = now_;
  if (!was_inside) waiting_since_ = now_;
}

// Shows what may be shown now: everything up to the next unfinished line, and the pieces of that
// line.
void LineKeeper::ShowHeld() {
  while (!held_.empty()) {
    auto next = held_.begin();
    if (inside_) {
      const auto more = held_of_.find(*inside_);
      if (more == held_of_.end()) return;
      next = held_.find(more->second.front());
    }
    const Piece piece = std::move(next->second);
    held_.erase(next);
    const auto of_writer = held_of_.find(piece.writer);
    of_writer->second.pop_front();
    if (of_writer->second.empty()) held_of_.erase(of_writer);
    held_bytes_ -= piece.bytes.size();
    ShowPiece(piece.writer, piece.ranks, piece.bytes);
  }
}

// The others no longer wait for its end.
void LineKeeper::LeaveLine() {
  inside_.reset();
  ShowHeld();
}

std::optional<TimePoint> LineKeeper::deadline() const {
  if (held_.empty()) return std::nullopt;
  return std::min(touched_ + kIdle, waiting_since_ + kLongest);
}

void LineKeeper::Due(TimePoint now) {
  now_ = now;
  if (const auto due = deadline(); due && *due <= now) LeaveLine();
}

void LineKeeper::Finish() {
  while (!held_.empty()) LeaveLine();
}

}  // namespace hvd
