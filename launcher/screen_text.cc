#include "launcher/screen_text.h"

#include <algorithm>
#include <span>
#include <utility>

namespace hvd {

ScreenText::ScreenText(OutputStream stream, ScreenTextOptions options)
    : prefixer_(stream, std::move(options.style)),
      throttle_(options.ranks, options.updates_per_second,
                [this](uint32_t rank, std::string_view bytes) { Pass(rank, bytes); }) {
  if (!options.fold) return;
  folder_.emplace(options.ranks, [this](std::span<const uint32_t> ranks, std::string_view line) {
    prefixer_.AddFolded(ranks, line, text_);
  });
}

void ScreenText::Add(uint32_t rank, std::string_view bytes, TimePoint now) {
  now_ = now;
  throttle_.Add(rank, bytes, now);
}

void ScreenText::Pass(uint32_t rank, std::string_view bytes) {
  if (folder_) return folder_->Add(rank, bytes, now_);
  prefixer_.Add(rank, bytes, text_);
}

std::optional<TimePoint> ScreenText::deadline() const {
  std::optional<TimePoint> update = throttle_.deadline();
  std::optional<TimePoint> line = folder_ ? folder_->deadline() : std::nullopt;
  if (update && line) return std::min(*update, *line);
  return update ? update : line;
}

void ScreenText::Due(TimePoint now) {
  now_ = now;
  throttle_.Due(now);
  if (folder_) folder_->Due(now);
}

void ScreenText::Finish() {
  throttle_.Flush();
  if (folder_) folder_->Flush();
  text_ += prefixer_.Close();
}

}  // namespace hvd
