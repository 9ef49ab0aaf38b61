#include "discovery/host_spec.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "configs/message_text.h"
#include "discovery/host_item.h"
#include "discovery/host_range.h"
#include "discovery/words.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using Specs = std::vector<HostSpec>;

enum class Key { kSlots, kMaxSlots, kUser, kPort };

struct KeyName {
  std::string_view name;
  Key key;
};

// Open MPI has several names for each key.
constexpr std::array kKeyNames = {
    KeyName{"slots", Key::kSlots},        KeyName{"count", Key::kSlots},
    KeyName{"cpu", Key::kSlots},          KeyName{"max_slots", Key::kMaxSlots},
    KeyName{"max-slots", Key::kMaxSlots}, KeyName{"slots_max", Key::kMaxSlots},
    KeyName{"slots-max", Key::kMaxSlots}, KeyName{"user", Key::kUser},
    KeyName{"username", Key::kUser},      KeyName{"user_name", Key::kUser},
    KeyName{"port", Key::kPort}};

// The fields of a line besides the host.
struct LineWords {
  std::optional<uint32_t> slots;
  std::optional<uint32_t> max_slots;
  std::optional<std::string> user;
  std::optional<uint16_t> port;
};

Status GivenTwice(std::string_view what, std::string_view host) {
  return InvalidArgument("the " + std::string(what) + " of " + Quoted(host) + " is given twice");
}

template <typename T>
Status Assign(Result<T> value, std::optional<T>& place) {
  if (!value.ok()) return value.status();
  place = std::move(*value);
  return Status::Ok();
}

// Keys such as binding= and ifname= are ignored; a malformed key of ours is an error.
Status CheckForeignWord(std::string_view word, std::string_view name) {
  std::vector<std::string_view> ours;
  for (const KeyName& key : kKeyNames) ours.push_back(key.name);
  std::string_view nearest = NearestOf(name, ours);
  if (nearest.empty()) return Status::Ok();
  return InvalidArgument(Quoted(word) + " is not understood; did you mean " + std::string(nearest) +
                         "=?");
}

Status AddWord(std::string_view word, std::string_view host, LineWords& values) {
  size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return InvalidArgument(Quoted(word) +
                           " is not understood; a line is a name and slots=N, as in " +
                           "localhost slots=2");
  }
  std::string_view name = word.substr(0, equals);
  std::string_view value = word.substr(equals + 1);
  const auto* known = std::find_if(kKeyNames.begin(), kKeyNames.end(),
                                   [&](const KeyName& key) { return key.name == name; });
  if (known == kKeyNames.end()) return CheckForeignWord(word, name);
  switch (known->key) {
    case Key::kSlots:
      if (values.slots) return GivenTwice("number of slots", host);
      return Assign(ParseSlots(value, word), values.slots);
    case Key::kMaxSlots:
      if (values.max_slots) return GivenTwice("limit of slots", host);
      return Assign(ParseSlots(value, word), values.max_slots);
    case Key::kUser:
      if (values.user) return GivenTwice("user", host);
      values.user = value;
      return CheckUser(value, word);
    case Key::kPort:
      if (values.port) return GivenTwice("port", host);
      return Assign(ParsePort(value, word), values.port);
  }
  return Status::Ok();
}

// Joins "slots = 4" into one field.
std::string WithoutBlanksAroundEquals(std::string_view line) {
  std::string joined;
  for (std::string_view word : Words(line)) {
    if (!joined.empty() && !joined.ends_with('=') && !word.starts_with('=')) joined += ' ';
    joined += word;
  }
  return joined;
}

Status AddItem(const HostItem& item, const LineWords& values, std::string_view whole,
               Specs& specs) {
  if (item.slots && values.slots) return GivenTwice("number of slots", whole);
  if (!item.user.empty() && values.user) return GivenTwice("user", whole);
  if (item.port != 0 && values.port) return GivenTwice("port", whole);
  HostSpec spec;
  spec.slots = item.slots ? item.slots : values.slots ? values.slots : values.max_slots;
  spec.max_slots = values.max_slots;
  spec.user = values.user.value_or(item.user);
  spec.port = values.port.value_or(item.port);
  if (spec.max_slots && *spec.slots > *spec.max_slots) {
    return InvalidArgument(
        Format("{} has {} slots and at most {}; max_slots must not be less than slots",
               Quoted(whole), *spec.slots, *spec.max_slots));
  }
  for (const std::string& name : item.names) {
    spec.name = name;
    specs.push_back(spec);
  }
  return Status::Ok();
}

std::string_view WithoutComment(std::string_view line) {
  return line.substr(0, std::min(line.find('#'), line.find("//")));
}

// A machine file has a line per slot: a repeated name counts as one slot each time if no number is
// given.
void CountRepetitions(Specs& specs) {
  std::map<std::string_view, size_t> times;
  for (const HostSpec& spec : specs) ++times[spec.name];
  for (HostSpec& spec : specs) {
    if (!spec.slots && times[spec.name] > 1) spec.slots = 1;
  }
}

}  // namespace

Status AddHostLine(std::string_view line, Specs& specs) {
  std::string joined = WithoutBlanksAroundEquals(WithoutComment(line));
  std::vector<std::string_view> words = Words(joined);
  if (words.empty()) return Status::Ok();
  LineWords values;
  for (size_t i = 1; i < words.size(); ++i) {
    if (Status status = AddWord(words[i], words[0], values); !status.ok()) return status;
  }
  bool slots_said = values.slots || values.max_slots;
  Result<HostItem> item = ParseHostItem(words[0], slots_said, kMaxHosts - specs.size());
  if (!item.ok()) return item.status();
  return AddItem(*item, values, words[0], specs);
}

Result<Specs> ParseHostList(std::string_view text) {
  Specs specs;
  for (bool last = false; !last;) {
    std::string_view word = Trimmed(PopListItem(text, last));
    Result<HostItem> item = ParseHostItem(word, false, kMaxHosts - specs.size());
    if (!item.ok()) return item.status();
    if (Status status = AddItem(*item, {}, word, specs); !status.ok()) return status;
  }
  CountRepetitions(specs);
  return specs;
}

Result<Specs> ParseHostFile(std::string_view text, const std::string& file) {
  Specs specs;
  LineReader lines(text);
  while (std::optional<std::string_view> line = lines.Next()) {
    if (Status status = AddHostLine(*line, specs); !status.ok()) {
      const std::string_view sign = TypographicSignIn(*line);
      return InvalidArgument(
          Format("{}, line {}: {}{}{}", file, lines.number(), status.message(),
                 sign.empty() ? "" : "; the line has ", sign) +
          (sign.empty() ? "" : ", as word processors and web pages put it: type it again"));
    }
  }
  if (specs.empty()) return InvalidArgument("the host file " + file + " names no host");
  CountRepetitions(specs);
  return specs;
}

bool NamesHostFile(std::string_view hosts, const WordFacts& facts) {
  if (hosts.find("://") != std::string_view::npos) return false;
  if (hosts.find('/') != std::string_view::npos) return true;
  bool is_list = hosts.find_first_of(",:@[") != std::string_view::npos;
  return !is_list && facts.is_file && !facts.is_this_machine;
}

}  // namespace hvd
