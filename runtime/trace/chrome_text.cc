#include "runtime/trace/chrome_text.h"

#include <algorithm>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Bytes of the UTF-8 character at the start of `text`; 0 if it is not UTF-8.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if ((first & 0xF0U) == 0xE0U) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) >= 0x90;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

void AppendControl(std::string* out, unsigned char c) { *out += Format("\\u{:04x}", c); }

// Microseconds with three decimals.
std::string Microseconds(int64_t ns) {
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return Format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

}  // namespace

std::string JsonText(std::string_view text, size_t most) {
  std::string out = "\"";
  while (!text.empty() && out.size() < most) {
    const size_t bytes = CharacterBytes(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (bytes == 0) {
      out += kReplacement;
    } else if (bytes > 1) {
      out += text.substr(0, bytes);
    } else if (c == '"' || c == '\\') {
      (out += '\\') += text[0];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7F) {
      AppendControl(&out, c);
    } else {
      out += text[0];
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out += '"';
}

std::string EventLine(const TimelineEvent& event, uint32_t tid) {
  std::string line = R"({"ph":")";
  line += static_cast<char>(event.phase);
  line += '"';
  if (event.phase != TimelineEvent::Phase::kEnd) line += ",\"name\":" + JsonText(event.name);
  line += ",\"ts\":" + Microseconds(event.ns);
  line += Format(",\"pid\":{},\"tid\":{}", event.rank, tid);
  if (event.phase == TimelineEvent::Phase::kTick) line += ",\"dur\":0";
  if (event.phase == TimelineEvent::Phase::kMark)
    line += event.row.empty() ? R"(,"s":"p")" : R"(,"s":"t")";
  if (!event.args.empty()) line += ",\"args\":{" + event.args + "}";
  return line += '}';
}

std::string MetadataLine(std::string_view name, uint32_t pid, uint32_t tid, std::string_view args) {
  std::string line = "{\"ph\":\"M\",\"name\":" + JsonText(name);
  line += Format(",\"pid\":{},\"tid\":{},\"args\":{{", pid, tid);
  return line.append(args).append("}}");
}

}  // namespace hvd
