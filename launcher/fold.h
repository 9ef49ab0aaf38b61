// Folder: equal lines of many ranks become one, with the ranks that wrote it. A line waits at most kFoldWait for its
// equals; the lines of one rank keep their order. Pure: time is passed in.
#ifndef HVD_LAUNCHER_FOLD_H_
#define HVD_LAUNCHER_FOLD_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

inline constexpr Duration kFoldWait = std::chrono::milliseconds(150);

struct FoldedLine {
  std::string label;  // "0-3", "0,2-3", "5"
  std::string bytes;  // with its line end, if it has one
};

// "0,2-3"
std::string RankRanges(const std::set<uint32_t>& ranks);

// For one screen stream.
class Folder {
 public:
  explicit Folder(uint32_t size) : size_(size), partial_(size), last_group_(size) {}

  // Takes bytes as a rank wrote them; returns what may be shown now.
  std::vector<FoldedLine> Add(uint32_t rank, std::string_view bytes, TimePoint now);
  // When something must be shown; then call Due.
  std::optional<TimePoint> deadline() const;
  std::vector<FoldedLine> Due(TimePoint now);
  // Everything, also unfinished lines.
  std::vector<FoldedLine> Flush();

 private:
  static constexpr size_t kMaxHeldBytes = 1024 * 1024;
  static constexpr size_t kMaxLineBytes = 16 * 1024;  // a longer one goes on in pieces

  struct Group {
    std::string line;
    std::set<uint32_t> ranks;
    TimePoint since;
  };

  void AddLine(uint32_t rank, std::string line, TimePoint now);
  void ShowFirst(std::vector<FoldedLine>& shown);
  void ShowReady(TimePoint now, std::vector<FoldedLine>& shown);

  uint32_t size_;
  std::deque<Group> groups_;  // in the order they are shown
  uint64_t first_ = 1;        // the number of groups_[0]
  size_t held_bytes_ = 0;
  std::vector<std::string> partial_;  // by rank
  std::vector<uint64_t> last_group_;  // by rank: it may join later ones only
  std::unordered_map<std::string, std::deque<uint64_t>> by_line_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_FOLD_H_
