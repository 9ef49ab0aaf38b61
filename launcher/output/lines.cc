#include "launcher/output/lines.h"

#include <algorithm>
#include <ctime>

#include "launcher/output/text/columns.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr const char* kErase = "\x1b[K";  // from the cursor to the end of the line

// The start of the last Python traceback, including the exceptions that caused it.
std::optional<size_t> TracebackIn(std::string_view text) {
  constexpr std::string_view kHead = "Traceback (most recent call last):";
  constexpr std::string_view kLinks[] = {
      "During handling of the above exception, another exception occurred:\n\n",
      "The above exception was the direct cause of the following exception:\n\n"};
  auto at_line_start = [&](size_t at) { return at == 0 || text[at - 1] == '\n'; };
  size_t at = text.rfind(kHead);
  while (at != std::string_view::npos && !at_line_start(at)) {
    at = at == 0 ? std::string_view::npos : text.rfind(kHead, at - 1);
  }
  if (at == std::string_view::npos) return std::nullopt;
  while (true) {
    std::string_view before = text.substr(0, at);
    if (!before.ends_with(kLinks[0]) && !before.ends_with(kLinks[1])) return at;
    size_t earlier = before.rfind(kHead);
    if (earlier == std::string_view::npos || !at_line_start(earlier)) return at;
    at = earlier;
  }
}

}  // namespace

LineBuffer::Ready LineBuffer::Add(std::string_view bytes) {
  size_t newline = bytes.rfind('\n');
  size_t after = newline == std::string_view::npos ? 0 : newline + 1;
  size_t returned = bytes.substr(after).rfind('\r');
  size_t end = returned == std::string_view::npos ? after : after + returned + 1;
  if (end > 0) return {std::exchange(held_, std::string(bytes.substr(end))), bytes.substr(0, end)};
  held_ += bytes;
  return {held_.size() < kMaxHeld ? std::string() : Flush(), {}};
}

void LastLines::Add(std::string_view bytes) {
  tail_ += bytes;
  if (tail_.size() > 2 * kMaxTracebackBytes) tail_.erase(0, tail_.size() - kMaxTracebackBytes);
}

std::string LastLines::Text() const {
  std::string_view text = tail_;
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (std::optional<size_t> traceback = TracebackIn(text)) {
    text.remove_prefix(*traceback);
    if (text.size() > kMaxTracebackBytes) text.remove_prefix(text.size() - kMaxTracebackBytes);
    return std::string(text);
  }
  size_t begin = text.size();
  for (size_t lines = 0; lines < kMaxLines && begin > 0; ++lines) {
    size_t newline = text.rfind('\n', begin - 1);
    begin = newline == std::string_view::npos ? 0 : newline;
  }
  if (begin < text.size() && text[begin] == '\n') ++begin;
  text.remove_prefix(begin);
  if (text.size() > kMaxBytes) text.remove_prefix(text.size() - kMaxBytes);
  return std::string(text);
}

void ShownErrors::Add(uint32_t rank, OutputStream stream, std::string_view bytes) {
  lines_ += static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  if (stream != OutputStream::kStderr) return;
  auto tail = std::find_if(tails_.begin(), tails_.end(),
                           [rank](const Tail& other) { return other.rank == rank; });
  if (tail == tails_.end()) {
    if (tails_.size() == kMaxRanks) tails_.erase(tails_.begin());
    tails_.push_back({.rank = rank});
  } else {
    std::rotate(tail, tail + 1, tails_.end());
  }
  std::string& text = tails_.back().text;
  text += bytes;
  constexpr size_t kMost = LastLines::kMaxTracebackBytes;
  if (text.size() > 2 * kMost) text.erase(0, text.size() - kMost);
  tails_.back().shown = lines_;
}

bool ShownErrors::EndWith(std::string_view text) const {
  return std::any_of(tails_.begin(), tails_.end(), [&](const Tail& tail) {
    std::string_view shown = tail.text;
    while (shown.ends_with('\n')) shown.remove_suffix(1);
    return !text.empty() && shown.ends_with(text) && lines_ - tail.shown <= kMaxLinesAfter;
  });
}

std::string TimeStampText(int64_t wall_seconds) {
  std::time_t time = wall_seconds;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  char text[64] = {};
  return {text, std::strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &parts)};
}

size_t LineLength(std::string_view bytes, bool returns) {
  size_t newline = bytes.find('\n');
  size_t before = newline == std::string_view::npos ? bytes.size() : newline;
  size_t at = returns ? bytes.substr(0, before).find('\r') : std::string_view::npos;
  if (at == std::string_view::npos || at + 1 == newline)
    return newline == std::string_view::npos ? (at == std::string_view::npos ? 0 : at + 1)
                                             : newline + 1;
  return at + 1;
}

LinePrefixer::LinePrefixer(OutputStream stream, PrefixStyle style, ScreenLine& line)
    : stream_(stream),
      style_(std::move(style)),
      line_(line),
      timed_(style_.stamp || style_.prefix.Has(PrefixTemplate::Field::kTime)) {}

// Fields that differ between the ranks of a folded line are "*".
void LinePrefixer::MakePrefix(Label& label, std::span<const uint32_t> ranks) const {
  using Field = PrefixTemplate::Field;
  constexpr unsigned kColors = 6;  // red to cyan
  label.made_at = Now();
  auto common = [&](auto text_of) {
    std::string text;
    for (uint32_t rank : ranks) {
      std::string here = rank < style_.places.size() ? text_of(style_.places[rank]) : "?";
      if (!text.empty() && text != here) return std::string("*");
      text = std::move(here);
    }
    return text;
  };
  std::string text = style_.prefix.Text([&](Field field) -> std::string {
    switch (field) {
      case Field::kRank: return label.name;
      case Field::kLocalRank:
        return common([](const PrefixPlace& p) { return std::to_string(p.local_rank); });
      case Field::kHost: return common([](const PrefixPlace& p) { return p.host; });
      case Field::kStream: return stream_ == OutputStream::kStdout ? "stdout" : "stderr";
      case Field::kTime: return TimeStampText(label.made_at);
      case Field::kText: break;
    }
    return "";
  });
  if (style_.stamp && !style_.prefix.Has(Field::kTime)) text = TimeStampText(label.made_at) + text;
  if (style_.color) text = Format("\x1b[3{}m{}\x1b[0m", 1 + ranks[0] % kColors, text);
  label.prefix = std::move(text);
  label.columns = ColumnsOf(label.prefix);
  label.writer = (stream_ == OutputStream::kStdout ? "out " : "err ") + label.name;
}

const LinePrefixer::Label& LinePrefixer::LabelOf(uint32_t rank) {
  if (labels_.size() <= rank) labels_.resize(rank + 1);
  Label& label = labels_[rank];
  if (label.made_at < 0) label.name = std::to_string(rank);
  if (label.made_at < 0 || label.made_at != Now()) MakePrefix(label, {&rank, 1});
  return label;
}

void LinePrefixer::Add(uint32_t rank, std::string_view bytes) {
  if (!bytes.empty()) Put(LabelOf(rank), {&rank, 1}, bytes);
}

void LinePrefixer::AddFolded(std::span<const uint32_t> ranks, std::string_view bytes) {
  if (ranks.size() == 1) return Add(ranks[0], bytes);
  if (!std::equal(ranks.begin(), ranks.end(), folded_ranks_.begin(), folded_ranks_.end())) {
    folded_ranks_.assign(ranks.begin(), ranks.end());
    folded_.name = RankRanges(ranks);
    folded_.made_at = -1;
  }
  if (folded_.made_at < 0 || folded_.made_at != Now()) MakePrefix(folded_, ranks);
  Put(folded_, ranks, bytes);
}

void LinePrefixer::PutRaw(std::span<const uint32_t> ranks, std::string_view bytes) {
  const size_t begin = line_.text.size();
  line_.text += bytes;
  if (!line_.tracks) return;
  for (uint32_t rank : ranks) line_.spans.push_back({begin, line_.text.size(), rank, stream_});
}

void LinePrefixer::GoOnWith(uint32_t rank, bool returned) {
  line_.writer = LabelOf(rank).writer;
  line_.returned = returned;
}

void LinePrefixer::Put(const Label& label, std::span<const uint32_t> ranks,
                       std::string_view bytes) {
  std::string& out = line_.text;
  if (line_.writer != label.writer) {
    if (!bytes.empty()) Close();
  } else if (line_.returned && bytes.front() == '\n') {  // the second half of "\r\n"
    PutRaw(ranks, bytes.substr(0, 1));
    bytes.remove_prefix(1);
    line_.writer.clear();
    line_.returned = false;
  }
  const bool returns = bytes.find('\r') != std::string_view::npos;
  while (!bytes.empty()) {
    const size_t length = LineLength(bytes, returns);
    const std::string_view piece = bytes.substr(0, length == 0 ? bytes.size() : length);
    const bool fresh = line_.writer.empty() || line_.returned;
    const bool bar = piece.ends_with('\r') || (line_.returned && length == 0);
    if (line_.returned && style_.terminal) out += kErase;
    if (fresh) out += label.prefix;
    // Does not cut a piece that continues a line: how much of the line is on the screen is unknown.
    if (fresh && bar && style_.terminal) {
      PutUpdate(label, piece);
    } else {
      PutRaw(ranks, piece);
    }
    line_.returned = piece.ends_with('\r');
    if (piece.ends_with('\n')) {
      line_.writer.clear();
    } else {
      line_.writer = label.writer;
    }
    bytes.remove_prefix(piece.size());
  }
}

// An update of a progress bar, with or without its "\r".
void LinePrefixer::PutUpdate(const Label& label, std::string_view update) {
  const size_t columns = style_.terminal && style_.columns ? style_.columns() : 0;
  if (columns <= label.columns + 1) {
    line_.text += update;
    return;
  }
  const bool returns = update.ends_with('\r');
  if (returns) update.remove_suffix(1);
  line_.text += CutToColumns(update, columns - label.columns - 1);
  if (returns) line_.text += '\r';
}

void LinePrefixer::Close() {
  if (!line_.writer.empty()) line_.text += line_.returned && style_.terminal ? kErase : "\n";
  LineTyped();
}

void LinePrefixer::LineTyped() {
  line_.writer.clear();
  line_.returned = false;
}

}  // namespace hvd
