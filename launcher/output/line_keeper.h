// LineKeeper: lets a rank that is inside of a line finish it before others are shown, so that one
// that comes in many pieces (200 kB of JSON) is neither torn nor continued under a second prefix.
// The others wait for a bounded time, and as long as what they print fits into a bound; then the
// line is left open and they are shown. Pure: time is passed in.
#ifndef HVD_LAUNCHER_OUTPUT_LINE_KEEPER_H_
#define HVD_LAUNCHER_OUTPUT_LINE_KEEPER_H_

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

class LineKeeper {
 public:
  // Without more of the line for so long, others are shown; a prompt may stay open for ever.
  static constexpr Duration kIdle = std::chrono::milliseconds(200);
  // Others wait for one line no longer than this: a line may have no end.
  static constexpr Duration kLongest = std::chrono::seconds(2);
  static constexpr size_t kMostHeld = size_t{32} << 20;

  using Show = std::function<void(std::span<const uint32_t> ranks, std::string_view bytes)>;

  // Bytes of `ranks` (folded, or one) on one of the streams that share the screen's line, shown by
  // `show` now or later; it outlives this object.
  void Add(const Show& show, std::span<const uint32_t> ranks, std::string_view bytes,
           TimePoint now);
  // When Due has something to do.
  std::optional<TimePoint> deadline() const;
  void Due(TimePoint now);
  // Shows all that is held.
  void Finish();

 private:
  // A stream of a rank.
  struct Writer {
    const Show* show = nullptr;
    uint32_t rank = 0;
    auto operator<=>(const Writer&) const = default;
  };
  struct Piece {
    Writer writer;
    std::vector<uint32_t> ranks;
    std::string bytes;
  };

  void ShowPiece(const Writer& writer, std::span<const uint32_t> ranks, std::string_view bytes);
  void ShowHeld();
  void LeaveLine();

  std::optional<Writer> inside_;  // it has shown a line without its end
  TimePoint now_{}, touched_{}, waiting_since_{};
  std::map<uint64_t, Piece> held_;  // in the order in which they came
  std::map<Writer, std::deque<uint64_t>> held_of_;
  size_t held_bytes_ = 0;
  uint64_t next_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_LINE_KEEPER_H_
