#include "launcher/agent/kept_output.h"

#include <algorithm>

namespace hvd {

void KeptOutput::Add(uint32_t rank, OutputStream stream, std::string_view first,
                     std::string_view second) {
  if (!enabled_ || stream == OutputStream::kResult) return;
  const size_t size = first.size() + second.size();
  if (size == 0) return;
  Place& place = places_[{rank, stream}];
  Piece piece{{rank, stream}, place.end, {}};
  piece.bytes.reserve(size);
  piece.bytes.append(first).append(second);
  place.end += size;
  bytes_ += size;
  pieces_.push_back(std::move(piece));
}

void KeptOutput::NotePrinted(const OutputPrinted& printed) {
  Place& place = places_[{printed.rank, printed.stream}];
  place.printed = std::max(place.printed, std::min(printed.bytes, place.end));
  while (!pieces_.empty()) {
    const Piece& first = pieces_.front();
    if (first.begin + first.bytes.size() > places_[first.writer].printed) return;
    bytes_ -= first.bytes.size();
    pieces_.pop_front();
  }
}

void KeptOutput::ForEach(const std::function<void(uint32_t rank, OutputStream stream,
                                                  std::string_view bytes)>& take) const {
  for (const Piece& piece : pieces_) {
    const uint64_t printed = places_.at(piece.writer).printed;
    const uint64_t over = printed > piece.begin ? printed - piece.begin : 0;
    if (over >= piece.bytes.size()) continue;
    take(piece.writer.first, piece.writer.second, std::string_view(piece.bytes).substr(over));
  }
}

}  // namespace hvd
