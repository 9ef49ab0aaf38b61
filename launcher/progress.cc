#include "launcher/progress.h"

#include <utility>

namespace hvd {

std::optional<TimePoint> Progress::due() const {
  if (over_ || !changed_) return std::nullopt;
  return next_;
}

std::string Progress::Show(TimePoint now) {
  if (over_ || now < next_) return "";
  next_ = now + kBetween;
  changed_ = false;
  if (in_init_ >= size_) return Wipe();
  shown_ = true;
  std::string of = "/" + std::to_string(size_);
  return "\r\x1b[Khvdrun: starting: workers started " + std::to_string(started_) + of +
         ", in init " + std::to_string(in_init_) + of;
}

std::string Progress::Wipe() {
  over_ = true;
  return std::exchange(shown_, false) ? "\r\x1b[K" : "";
}

}  // namespace hvd
