#include "discovery/host_spec.h"

#include <algorithm>
#include <charconv>

#include "configs/message_text.h"

namespace hvd {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

std::string_view Trimmed(std::string_view text) {
  size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  size_t end = text.find_last_not_of(kBlanks);
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool IsAddressCharacter(char c) { return IsNameCharacter(c) || c == ':' || c == '%'; }

// Where the name ends and the slots begin.
struct Cut {
  std::string_view name;
  std::optional<std::string_view> slots;
  bool address = false;  // of IPv6
};

Cut CutItem(std::string_view item) {
  if (item.starts_with('[')) {
    size_t close = item.find(']');
    if (close == std::string_view::npos) return {item, std::nullopt, false};
    std::string_view rest = item.substr(close + 1);
    std::string_view name = item.substr(1, close - 1);
    if (rest.empty()) return {name, std::nullopt, true};
    if (rest[0] != ':') return {item, std::nullopt, false};
    return {name, rest.substr(1), true};
  }
  size_t colon = item.find(':');
  if (colon == std::string_view::npos) return {item, std::nullopt, false};
  if (item.find(':', colon + 1) != std::string_view::npos) return {item, std::nullopt, true};
  return {item.substr(0, colon), item.substr(colon + 1), false};
}

Result<uint32_t> ParseSlots(std::string_view text, std::string_view item) {
  uint32_t slots = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && slots >= 1 && slots <= kMaxSlots) return slots;
  return InvalidArgument("in " + Quoted(item) + " the slots are " + Quoted(text) +
                         "; they must be a number from 1 to " + std::to_string(kMaxSlots) +
                         ", as in localhost:2");
}

Status CheckName(const Cut& cut, std::string_view item) {
  if (cut.name.empty()) {
    return InvalidArgument("the host list has an entry without a name, " + Quoted(item) +
                           "; try localhost:2");
  }
  bool valid = std::all_of(cut.name.begin(), cut.name.end(),
                           cut.address ? IsAddressCharacter : IsNameCharacter);
  if (valid && cut.name.front() != '-') return Status::Ok();
  return InvalidArgument(Quoted(item) +
                         " is no host with slots; try a name and a number, as in "
                         "localhost:2");
}

Result<HostSpec> ParseItem(std::string_view item) {
  Cut cut = CutItem(item);
  if (Status status = CheckName(cut, item); !status.ok()) return status;
  HostSpec spec{std::string(cut.name), std::nullopt};
  if (!cut.slots) return spec;
  Result<uint32_t> slots = ParseSlots(*cut.slots, item);
  if (!slots.ok()) return slots.status();
  spec.slots = *slots;
  return spec;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = Trimmed(line); !line.empty(); line = Trimmed(line)) {
    size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

Result<HostSpec> ParseLine(const std::vector<std::string_view>& words) {
  Result<HostSpec> spec = ParseItem(words[0]);
  if (!spec.ok()) return spec;
  for (size_t i = 1; i < words.size(); ++i) {
    size_t equals = words[i].find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return InvalidArgument(Quoted(words[i]) +
                             " is not understood; a line is a name and "
                             "slots=N, as in localhost slots=2");
    }
    if (words[i].substr(0, equals) != "slots") continue;
    if (spec->slots) return InvalidArgument("the slots of " + Quoted(words[0]) + " are said twice");
    Result<uint32_t> slots = ParseSlots(words[i].substr(equals + 1), words[i]);
    if (!slots.ok()) return slots.status();
    spec->slots = *slots;
  }
  return spec;
}

}  // namespace

Result<std::vector<HostSpec>> ParseHostList(std::string_view text) {
  std::vector<HostSpec> specs;
  while (true) {
    size_t comma = std::min(text.find(','), text.size());
    Result<HostSpec> spec = ParseItem(Trimmed(text.substr(0, comma)));
    if (!spec.ok()) return spec.status();
    specs.push_back(std::move(*spec));
    if (comma == text.size()) return specs;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<HostSpec>> ParseHostFile(std::string_view text, const std::string& file) {
  std::vector<HostSpec> specs;
  for (size_t number = 1; !text.empty(); ++number) {
    size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    std::vector<std::string_view> words = Words(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    Result<HostSpec> spec = ParseLine(words);
    if (!spec.ok()) {
      return InvalidArgument(file + ", line " + std::to_string(number) + ": " +
                             spec.status().message());
    }
    specs.push_back(std::move(*spec));
  }
  if (specs.empty()) return InvalidArgument("the host file " + file + " names no host");
  return specs;
}

}  // namespace hvd
