#include "timeline/read/trace_event.h"

#include <cmath>
#include <limits>

#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

std::string_view* FieldOf(TraceEvent* event, std::string_view key) {
  switch (key.size()) {
    case 2:
      if (key == "ts") return &event->ts;
      return key == "id" ? &event->id : nullptr;
    case 3:
      if (key == "pid") return &event->pid;
      if (key == "tid") return &event->tid;
      if (key == "dur") return &event->dur;
      return key == "cat" ? &event->cat : nullptr;
    case 4:
      if (key == "name") return &event->name;
      return key == "args" ? &event->args : nullptr;
    default: return nullptr;
  }
}

// A number with an exponent or many digits.
std::optional<int64_t> SlowNanoseconds(std::string_view micros) {
  const auto value = ParseWhole<double>(micros);
  constexpr double kMost = 9e15;
  if (!value || !(std::abs(*value) < kMost)) return std::nullopt;
  return std::llround(*value * 1e3);
}

}  // namespace

std::string NameIn(std::string_view args) {
  std::string name;
  ForEachMember(args, [&](std::string_view key, std::string_view value) {
    if (key == "name") name = StringOf(value);
  });
  return name;
}

Walked ReadTraceEvent(JsonWalk* walk, TraceEvent* event) {
  *event = {};
  if (walk->AtEnd()) return Walked::kCut;
  const char* begin = walk->at();
  if (*begin != '{') return Walked::kBad;
  const auto on_member = [event](std::string_view key, std::string_view value) {
    if (key == "ph") {
      event->phase = value.size() == 3 && value[0] == '"' ? value[1] : '\0';
    } else if (std::string_view* field = FieldOf(event, key); field != nullptr) {
      *field = value;
    }
  };
  const Walked walked = walk->Object(on_member);
  if (walked == Walked::kWhole)
    event->text = std::string_view(begin, static_cast<size_t>(walk->at() - begin));
  return walked;
}

std::optional<int64_t> NanosecondsOf(std::string_view micros) {
  constexpr size_t kMostDigits =
      15;  // of whole microseconds; with one more and three decimals, 64 bits suffice
  const bool negative = !micros.empty() && micros[0] == '-';
  size_t at = negative ? 1 : 0;
  const size_t first = at;
  uint64_t value = 0;
  const auto digit = [&] { return at < micros.size() && micros[at] >= '0' && micros[at] <= '9'; };
  for (; digit() && at - first <= kMostDigits; ++at)
    value = value * 10 + static_cast<uint64_t>(micros[at] - '0');
  if (at == first) return std::nullopt;
  int decimals = 0;
  if (at < micros.size() && micros[at] == '.') {
    for (++at; digit() && decimals < 3; ++at, ++decimals)
      value = value * 10 + static_cast<uint64_t>(micros[at] - '0');
  }
  if (at != micros.size()) return SlowNanoseconds(micros);
  for (; decimals < 3; ++decimals) value *= 10;
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

void AppendMicros(std::string* out, int64_t ns) {
  uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  char room[32];
  char* const end = room + sizeof room;
  char* p = end;
  for (int i = 0; i < 3; ++i, size /= 10) *--p = static_cast<char>('0' + size % 10);
  *--p = '.';
  do {
    *--p = static_cast<char>('0' + size % 10);
  } while ((size /= 10) > 0);
  if (ns < 0) *--p = '-';
  out->append(p, static_cast<size_t>(end - p));
}

}  // namespace hvd
