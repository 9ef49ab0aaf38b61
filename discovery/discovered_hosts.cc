#include "discovery/discovered_hosts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "configs/message_text.h"
#include "discovery/host_range.h"
#include "discovery/words.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using HostKey = std::pair<std::string, uint16_t>;  // the name and the port of ssh

// "name:0" and "name slots=0" with one slot instead; nothing for other lines.
std::optional<std::string> WithASlot(std::string_view line) {
  std::string changed;
  bool none = false;
  for (std::string_view word : Words(line)) {
    const bool first = changed.empty();
    const bool zero = first ? word.ends_with(":0") && std::count(word.begin(), word.end(), ':') == 1
                            : word == "slots=0";
    none = none || zero;
    changed += (first ? "" : " ") + std::string(word.substr(0, word.size() - (zero ? 1 : 0)));
    if (zero) changed += '1';
  }
  return none ? std::optional(changed) : std::nullopt;
}

std::string SlotsText(const HostSpec& spec) {
  return spec.slots ? std::to_string(*spec.slots) : "its own number of";
}

// The hosts of the lines so far; repeated lines count once, and the last entry of a host wins.
class Hosts {
 public:
  explicit Hosts(std::vector<std::string>& notes) : notes_(notes) {}

  Status AddLine(std::string_view line, size_t number) {
    const std::optional<std::string> without_slots = WithASlot(line);
    std::vector<HostSpec> found;
    HVD_RETURN_IF_ERROR(AddHostLine(without_slots ? *without_slots : line, found));
    for (HostSpec& spec : found) {
      if (Status status = Add(std::move(spec), number, !without_slots); !status.ok()) return status;
    }
    return Status::Ok();
  }

  std::vector<HostSpec> Release() {
    std::vector<HostSpec> specs;
    for (Printed& host : hosts_) {
      if (host.usable) specs.push_back(std::move(host.spec));
    }
    return specs;
  }

 private:
  struct Printed {
    HostSpec spec;
    size_t line = 0;
    bool usable = true;
  };

  Status Add(HostSpec spec, size_t line, bool usable) {
    const auto [place, added] = places_.try_emplace(HostKey(spec.name, spec.port), hosts_.size());
    if (added) {
      if (hosts_.size() == kMaxHosts) return InvalidArgument("there are too many hosts before it");
      hosts_.push_back({std::move(spec), line, usable});
      return Status::Ok();
    }
    Printed& known = hosts_[place->second];
    if (known.spec.slots != spec.slots || known.usable != usable) {
      notes_.push_back(
          Format("host {} is on line {} with {} slots and on line {} with {}; the last line counts",
                 Printable(spec.name), known.line, TextOf(known.spec, known.usable), line,
                 TextOf(spec, usable)));
    }
    known = {std::move(spec), line, usable};
    return Status::Ok();
  }

  static std::string TextOf(const HostSpec& spec, bool usable) {
    return usable ? SlotsText(spec) : "0";
  }

  std::vector<std::string>& notes_;
  std::vector<Printed> hosts_;
  std::map<HostKey, size_t> places_;
};

}  // namespace

Result<std::vector<HostSpec>> ParseDiscoveredHosts(std::string_view text,
                                                   std::vector<std::string>& notes) {
  Hosts hosts(notes);
  LineReader lines(text);
  while (std::optional<std::string_view> line = lines.Next()) {
    if (Status status = hosts.AddLine(*line, lines.number()); !status.ok()) {
      return InvalidArgument(
          Format("line {} ({}): {}", lines.number(), Quoted(Trimmed(*line)), status.message()));
    }
  }
  return hosts.Release();
}

std::vector<HostSlots> HostsByName(const std::vector<HostSpec>& specs, const MachineFacts& facts) {
  std::vector<HostSlots> hosts;
  std::map<HostKey, size_t> places;
  for (const HostSpec& spec : specs) {
    const bool remote = !facts.is_this_machine(spec.name);
    const auto [place, added] = places.try_emplace(HostKey(spec.name, spec.port), hosts.size());
    if (added) hosts.push_back({.host = spec.name, .port = spec.port, .remote = remote});
    AddPlace(spec, facts, hosts[place->second]);
  }
  return hosts;
}

}  // namespace hvd
