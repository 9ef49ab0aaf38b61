#include "discovery/host_range.h"

#include <algorithm>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// One part of a pattern: literal text, or the numbers first..last.
struct Span {
  uint64_t first = 0;
  uint64_t last = 0;
  size_t width = 0;  // digits, with leading zeros
};

struct Part {
  std::string_view text;    // before the bracket
  std::vector<Span> spans;  // empty after the last bracket
};

constexpr size_t kMaxDigits = 12;
constexpr size_t kMaxName = 253;  // of DNS

Status Malformed(std::string_view pattern, const std::string& why) {
  return InvalidArgument("the range in " + Quoted(pattern) + " " + why +
                         "; ranges look like node[01-16] or n[1-3,7]");
}

std::optional<uint64_t> ParseNumber(std::string_view digits) {
  return digits.size() <= kMaxDigits ? ParseWhole<uint64_t>(digits) : std::nullopt;
}

Result<Span> ParseSpan(std::string_view text, std::string_view pattern) {
  size_t dash = text.find('-');
  std::string_view low = text.substr(0, dash);
  std::string_view high = dash == std::string_view::npos ? low : text.substr(dash + 1);
  const std::optional<uint64_t> first = ParseNumber(low), last = ParseNumber(high);
  if (!first || !last) {
    return Malformed(pattern,
                     "has the part " + Quoted(text) + ", which is neither a number nor a range");
  }
  if (*last < *first) return Malformed(pattern, "runs backwards in " + Quoted(text));
  return Span{*first, *last, low.size()};
}

Result<std::vector<Span>> ParseSpans(std::string_view text, std::string_view pattern) {
  std::vector<Span> spans;
  while (true) {
    size_t comma = text.find(',');
    Result<Span> span = ParseSpan(text.substr(0, comma), pattern);
    if (!span.ok()) return span.status();
    spans.push_back(*span);
    if (comma == std::string_view::npos) return spans;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<Part>> ParseParts(std::string_view pattern) {
  std::vector<Part> parts;
  std::string_view rest = pattern;
  while (true) {
    size_t open = rest.find_first_of("[]");
    parts.push_back({rest.substr(0, open), {}});
    if (open == std::string_view::npos) return parts;
    size_t close = rest.find_first_of("[]", open + 1);
    if (rest[open] == ']' || close == std::string_view::npos || rest[close] == '[') {
      return Malformed(pattern, "has brackets that do not match");
    }
    Result<std::vector<Span>> spans = ParseSpans(rest.substr(open + 1, close - open - 1), pattern);
    if (!spans.ok()) return spans.status();
    parts.back().spans = std::move(*spans);
    rest.remove_prefix(close + 1);
  }
}

// The number of names, or limit + 1 if there are more than `limit`.
size_t CountNames(const std::vector<Part>& parts, size_t limit) {
  size_t names = 1;
  for (const Part& part : parts) {
    if (part.spans.empty()) continue;
    size_t numbers = 0;
    for (const Span& span : part.spans) {
      // Each step is bounded by limit + 1, so that neither sum nor product can overflow.
      numbers += std::min<uint64_t>(span.last - span.first, limit) + 1;
      numbers = std::min(numbers, limit + 1);
    }
    names = std::min(names * numbers, limit + 1);
  }
  return names;
}

// An upper bound, exact where there are no ranges.
size_t LongestName(const std::vector<Part>& parts) {
  size_t longest = 0;
  for (const Part& part : parts)
    longest += part.text.size() + (part.spans.empty() ? 0 : kMaxDigits);
  return longest;
}

std::string Padded(uint64_t number, size_t width) {
  std::string digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

}  // namespace

Result<std::vector<std::string>> ExpandHostRange(std::string_view pattern, size_t limit) {
  Result<std::vector<Part>> parts = ParseParts(pattern);
  if (!parts.ok()) return parts.status();
  if (LongestName(*parts) > kMaxName) {
    return InvalidArgument(
        Format("{} makes names of more than the {} characters that a name may have",
               Quoted(pattern), kMaxName));
  }
  if (CountNames(*parts, limit) > limit) {
    return InvalidArgument(
        Format("{} makes more than the {} hosts that a job may still have; name fewer",
               Quoted(pattern), limit));
  }
  std::vector<std::string> names = {""};
  for (const Part& part : *parts) {
    for (std::string& name : names) name += part.text;
    if (part.spans.empty()) continue;
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const Span& span : part.spans) {
        for (uint64_t n = span.first; n <= span.last; ++n)
          longer.push_back(name + Padded(n, span.width));
      }
    }
    names = std::move(longer);
  }
  return names;
}

std::string_view PopListItem(std::string_view& list, bool& last) {
  size_t depth = 0;
  size_t end = 0;
  for (; end < list.size() && (list[end] != ',' || depth > 0); ++end) {
    if (list[end] == '[') ++depth;
    if (list[end] == ']' && depth > 0) --depth;
  }
  last = end == list.size();
  std::string_view item = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return item;
}

}  // namespace hvd
