// LineFolder: merges equal lines of many ranks into one that lists the ranks. A line waits at most
// kFoldWait for equal ones, and an unfinished line equally long for its end; the lines of one rank
// keep their order. Pure: time is passed in.
#ifndef HVD_LAUNCHER_OUTPUT_LINE_FOLDER_H_
#define HVD_LAUNCHER_OUTPUT_LINE_FOLDER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

inline constexpr Duration kFoldWait = std::chrono::milliseconds(150);

// Called with a line, including its line end if it has one, and the ranks that wrote it, ascending.
// Both are valid during the call only.
using ShowFolded = std::function<void(std::span<const uint32_t> ranks, std::string_view line)>;

// One per screen stream.
class LineFolder {
 public:
  LineFolder(uint32_t size, ShowFolded show);

  // Adds bytes as a rank wrote them; shows what is ready.
  void Add(uint32_t rank, std::string_view bytes, TimePoint now);
  // When to call Due; nothing if nothing is held.
  std::optional<TimePoint> deadline() const;
  void Due(TimePoint now);
  // Shows everything, including unfinished lines.
  void Flush();

 private:
  static constexpr size_t kMaxHeldBytes = 1024 * 1024;
  static constexpr size_t kMaxHeldLines = 64 * 1024;
  static constexpr size_t kMaxLineBytes = 16 * 1024;  // longer lines are passed on in pieces
  static constexpr size_t kWays = 8, kBuckets = 2 * kMaxHeldLines / kWays;
  static constexpr size_t kRecent = 8;
  static constexpr uint64_t kNone = 0;

  // A line that waits for equal ones. Lines are numbered 1, 2, ... in the order they are shown.
  struct Group {
    size_t at = 0;  // offset of its text from the first byte ever held
    uint32_t length = 0;
    uint32_t count = 0;  // ranks that wrote it
    uint64_t earlier_equal = kNone,
             later_equal = kNone;  // the previous and next group with the same text
    TimePoint since;
  };
  // Hash table entry for a text: the low half of the number of its last line. Entries of lines
  // already shown are stale and harmless.
  struct Place {
    uint32_t tag = 0, number = 0;
  };
  struct Recent {
    uint64_t hash = 0, number = kNone;
  };

  void AddLine(uint32_t rank, std::string_view line, TimePoint now);
  void AddPartial(uint32_t rank, TimePoint now);
  uint64_t MakeGroup(std::string_view line, TimePoint now);
  uint64_t LastEqual(const Place* bucket, uint32_t tag, std::string_view line) const;
  uint64_t FirstAfter(uint32_t rank, uint64_t last_equal, uint64_t hash) const;
  void Note(Place* bucket, uint32_t tag, uint64_t number);
  void ShowFirst();
  void ShowReady(TimePoint now);
  void DropShown();

  bool Waits(uint64_t number) const { return number >= first_ && number - first_ < waiting(); }
  size_t waiting() const { return groups_.size() - head_; }
  Group& group(uint64_t number) { return groups_[head_ + (number - first_)]; }
  const Group& group(uint64_t number) const { return groups_[head_ + (number - first_)]; }
  std::string_view TextOf(const Group& group) const {
    return std::string_view(text_).substr(group.at - text_begins_, group.length);
  }

  uint32_t size_;
  ShowFolded show_;
  size_t words_;  // 64-bit words in a set of ranks
  // The first head_ of these have been shown.
  std::vector<Group> groups_;
  std::vector<uint64_t> rank_sets_;  // words_ for each group
  size_t head_ = 0;
  uint64_t first_ = 1;  // the number of groups_[head_]
  std::string text_;    // of the groups
  size_t text_begins_ = 0, held_bytes_ = 0;
  std::vector<Place> table_;          // kWays for each bucket; made by the first line
  std::vector<std::string> partial_;  // by rank
  std::map<uint32_t, TimePoint> partial_since_;
  std::vector<uint64_t> last_group_;  // by rank: it may join later groups only
  // By rank: the texts that it joined most recently, which saves the search for a text that
  // repeats.
  std::vector<std::array<Recent, kRecent>> recent_;
  std::vector<uint32_t> shown_ranks_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_LINE_FOLDER_H_
