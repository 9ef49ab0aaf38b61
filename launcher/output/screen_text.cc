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
      show_(
          [this](std::span<const uint32_t> ranks, std::string_view bytes) { Show(ranks, bytes); }),
      throttle_(
          options.ranks, options.updates_per_second, options.style.terminal && !options.fold,
          [this](uint32_t rank, std::string_view bytes) { Pass(rank, bytes); },
          [this](uint32_t rank, size_t bytes) {
            if (line_.tracks) passed_[rank].drops.push_back({passed_[rank].passed, bytes});
          }),
      line_(line),
      folds_all_(options.fold),
      passed_(line.tracks ? options.ranks : 0),
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

void ScreenText::Show(std::span<const uint32_t> ranks, std::string_view bytes) {
  const size_t first = line_.spans.size();
  prefixer_.AddFolded(ranks, bytes);
  if (line_.tracks) NoteDrops(first);
}

// Of the added spans, those in which something was left out end there.
void ScreenText::NoteDrops(size_t first_span) {
  std::vector<PrintedSpan> spans(line_.spans.begin() + static_cast<ptrdiff_t>(first_span),
                                 line_.spans.end());
  line_.spans.resize(first_span);
  for (PrintedSpan span : spans) {
    Passed& passed = passed_[span.rank];
    uint64_t begin = passed.shown;  // of the span, in the bytes of the rank
    passed.shown += span.end - span.begin;
    while (!passed.drops.empty() && passed.drops.front().at <= passed.shown) {
      const Passed::Drop drop = passed.drops.front();
      passed.drops.pop_front();
      PrintedSpan part = span;
      part.end = span.begin + (drop.at - begin);
      part.dropped = drop.bytes;
      line_.spans.push_back(part);
      span.begin = part.end;
      begin = drop.at;
    }
    if (span.begin < span.end) line_.spans.push_back(span);
  }
  std::stable_sort(line_.spans.begin() + static_cast<ptrdiff_t>(first_span), line_.spans.end(),
                   [](const PrintedSpan& a, const PrintedSpan& b) { return a.begin < b.begin; });
}

void ScreenText::Pass(uint32_t rank, std::string_view bytes) {
  if (line_.tracks) passed_[rank].passed += bytes.size();
  if (folder_ && Folds(rank, bytes)) return folder_->Add(rank, bytes, now_);
  Keep({&rank, 1}, bytes);
}

void ScreenText::Keep(std::span<const uint32_t> ranks, std::string_view bytes) {
  line_.keeper.Add(show_, ranks, bytes, now_);
}

// Everything shortly after a traceback is folded, too, so that the lines of a rank stay in order.
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
