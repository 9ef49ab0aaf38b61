#include "launcher/output/progress.h"

#include <utility>

#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {

std::optional<TimePoint> Progress::due() const {
  if (over_ || !changed_) return std::nullopt;
  return next_;
}

void Progress::RankJoined(uint32_t rank) {
  if (joined_[rank]) return;
  joined_[rank] = true;
  ++in_init_;
  changed_ = true;
}

std::string Progress::Show(TimePoint now, const std::string& hosts) {
  if (over_ || now < next_) return "";
  next_ = now + kBetween;
  changed_ = false;
  if (in_init_ == joined_.size()) return Wipe();
  shown_ = true;
  if (hosts_) return "\r\x1b[Khvdrun: hosts: " + hosts;
  std::string of = Format("/{}", joined_.size());
  return Format("\r\x1b[Khvdrun: starting: workers started {}{}, in init {}{}{}", started_, of,
                in_init_, of, Missing());
}

// The ranks that have not called hvd.init(), once one has.
std::string Progress::Missing() const {
  constexpr size_t kMaxText = 40;  // the line must not wrap
  if (in_init_ == 0) return "";
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < joined_.size(); ++rank) {
    if (!joined_[rank]) ranks.push_back(rank);
  }
  std::string text = RankRanges(ranks);
  if (text.size() > kMaxText) {
    text.erase(text.rfind(',', kMaxText));
    text += ",...";
  }
  return (ranks.size() == 1 ? ", not yet: rank " : ", not yet: ranks ") + text;
}

std::string Progress::Wipe() {
  over_ = true;
  return std::exchange(shown_, false) ? "\r\x1b[K" : "";
}

}  // namespace hvd
