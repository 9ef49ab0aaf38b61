// LineKeeper: lets a rank finish its line before the output of others is shown, so that a line that
// arrives in many pieces (200 kB of JSON) is neither split nor continued under a second prefix.
// Output of the others is held for a bounded time and up to a bounded size; after that the line is
// left unfinished. Pure: time is passed in.
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
  // Others are shown once the line has not grown for this long: a prompt may never end.
  static constexpr Duration kIdle = std::chrono::milliseconds(200);
  // The longest that others wait for one line.
  static constexpr Duration kLongest = std::chrono::seconds(2);
  static constexpr size_t kMostHeld = size_t{32} << 20;

  using Show = std::function<void(std::span<const uint32_t> ranks, std::string_view bytes)>;

  // Bytes of `ranks` (several if folded) on one of the streams that share the screen's line, shown
  // by `show` now or later; `show` outlives this object.
  void Add(const Show& show, std::span<const uint32_t> ranks, std::string_view bytes,
           TimePoint now);
  // When to call Due.
  std::optional<TimePoint> deadline() const;
  void Due(TimePoint now);
  // Shows everything held.
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

  std::optional<Writer> inside_;  // its last line shown is unfinished
  TimePoint now_{}, touched_{}, waiting_since_{};
  std::map<uint64_t, Piece> held_;  // in order of arrival
  std::map<Writer, std::deque<uint64_t>> held_of_;
  size_t held_bytes_ = 0;
  uint64_t next_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_LINE_KEEPER_H_
