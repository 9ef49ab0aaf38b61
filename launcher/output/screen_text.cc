#include "launcher/output/screen_text.h"

#include <algorithm>
#include <span>
#include <utility>

namespace hvd {
namespace {

constexpr Duration kTracebackTime = 2 * kFoldWait;

}  // namespace

ScreenText::ScreenText(OutputStream stream, ScreenTextOptions options, ScreenLine& line)
    : prefixer_(stream, options.style, line),
      show_([this](std::span<const uint32_t> ranks, std::string_view bytes) {
        prefixer_.AddFolded(ranks, bytes);
      }),
      throttle_(options.ranks, options.updates_per_second, options.style.terminal && !options.fold,
                [this](uint32_t rank, std::string_view bytes) { Pass(rank, bytes); }),
      line_(line),
      folds_all_(options.fold),
      folds_until_(options.ranks) {
  if (!options.fold && options.ranks < 2) return;
  folder_.emplace(options.ranks, [this](std::span<const uint32_t> ranks, std::string_view text) {
    Keep(ranks, text);
  });
}

void ScreenText::Add(uint32_t rank, std::string_view bytes, TimePoint now) {
  now_ = now;
  throttle_.Add(rank, bytes, now);
}

void ScreenText::Pass(uint32_t rank, std::string_view bytes) {
  if (folder_ && Folds(rank, bytes)) return folder_->Add(rank, bytes, now_);
  Keep({&rank, 1}, bytes);
}

void ScreenText::Keep(std::span<const uint32_t> ranks, std::string_view bytes) {
  line_.keeper.Add(show_, ranks, bytes, now_);
}

// All that follows a traceback for a moment is folded, too: the lines of a rank keep their order.
bool ScreenText::Folds(uint32_t rank, std::string_view bytes) {
  if (folds_all_) return true;
  constexpr std::string_view kTraceback = "Traceback (most recent call last):\n";
  TimePoint& until = folds_until_[rank];
  if (bytes.find(kTraceback) != std::string_view::npos) until = now_ + kTracebackTime;
  if (now_ < until) return true;
  if (until != TimePoint{}) folder_->Flush();
  until = {};
  return false;
}

void ScreenText::AddOwn(const std::string& line) {
  prefixer_.Close();
  line_.text += line;
}

std::optional<TimePoint> ScreenText::deadline() const {
  std::optional<TimePoint> next;
  for (const std::optional<TimePoint>& due :
       {throttle_.deadline(), folder_ ? folder_->deadline() : std::nullopt,
        line_.keeper.deadline()}) {
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

void ScreenText::Due(TimePoint now) {
  now_ = now;
  throttle_.Due(now);
  if (folder_) folder_->Due(now);
  line_.keeper.Due(now);
}

void ScreenText::Finish() {
  throttle_.Flush();
  if (folder_) folder_->Flush();
  line_.keeper.Finish();
  prefixer_.Close();
}

}  // namespace hvd
