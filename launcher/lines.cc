#include "launcher/lines.h"

#include <ctime>

namespace hvd {
namespace {

// Where the last Python traceback begins, with the exceptions that it came from.
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

std::string LineBuffer::Add(std::string_view bytes) {
  size_t end = bytes.find_last_of("\r\n");
  if (end == std::string_view::npos) {
    held_ += bytes;
    return held_.size() < kMaxHeld ? std::string() : Flush();
  }
  std::string ready = Flush();
  ready += bytes.substr(0, end + 1);
  held_ = bytes.substr(end + 1);
  return ready;
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

std::string TimeStampText(int64_t wall_seconds) {
  std::time_t time = wall_seconds;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  char text[64] = {};
  return {text, std::strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &parts)};
}

void LinePrefixer::PutPrefix(const std::string& label, std::string& out) const {
  constexpr unsigned kColors = 6;  // red to cyan
  if (style_.color) {
    unsigned first = 0;  // rank of the label
    for (char c : label) {
      if (c < '0' || c > '9') break;
      first = (first * 10 + static_cast<unsigned>(c - '0')) % (kColors * 1000);
    }
    out.append("\x1b[3").append(1, static_cast<char>('1' + first % kColors)).append("m");
  }
  if (style_.stamp) out += style_.stamp();
  out.append("[").append(label).append(tag_);
  if (style_.color) out += "\x1b[0m";
}

std::string LinePrefixer::Add(const std::string& label, std::string_view bytes) {
  std::string out;
  if (bytes.empty()) return out;
  if (after_return_ == label && bytes.front() == '\n') {  // the second half of "\r\n"
    out += '\n';
    bytes.remove_prefix(1);
  }
  after_return_.reset();
  if (!bytes.empty() && open_ != label) out += Close();
  while (!bytes.empty()) {
    if (!open_) PutPrefix(label, out);
    size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      out += bytes;
      open_ = label;
      return out;
    }
    if (bytes[end] == '\r' && end + 1 < bytes.size() && bytes[end + 1] == '\n') ++end;
    out += bytes.substr(0, end + 1);
    if (bytes[end] == '\r' && end + 1 == bytes.size()) after_return_ = label;
    bytes.remove_prefix(end + 1);
    open_.reset();
  }
  return out;
}

std::string LinePrefixer::Close() {
  after_return_.reset();
  if (!open_) return {};
  open_.reset();
  return "\n";
}

}  // namespace hvd
