#include "discovery/allocations/machine_list.h"

#include <optional>
#include <utility>

#include "configs/message_text.h"
#include "discovery/host_item.h"
#include "discovery/host_range.h"
#include "discovery/words.h"
#include "runtime/base/text/number_text.h"

namespace hvd {

Status MachineList::BadListError(std::string_view text) const {
  return InvalidArgument(source_ + " has " + Quoted(text) +
                         ", which is no host with its slots, perhaps cut by a script");
}

Status MachineList::Add(std::string_view name, uint32_t slots) {
  auto known = index_.find(name);
  if (known == index_.end()) {
    const Result<HostItem> item = ParseHostItem(name, true, 1);
    const bool plain = item.ok() && item->names[0] == name;
    if (!plain || hosts_.size() == kMaxHosts) return BadListError(name);
    HostSpec host;
    host.name = std::string(name);
    host.slots = 0;
    known = index_.emplace(host.name, hosts_.size()).first;
    hosts_.push_back(std::move(host));
  }
  uint32_t& sum = *hosts_[known->second].slots;
  if (slots == 0 || slots > kMaxSlots - sum) return BadListError(name);
  sum += slots;
  return Status::Ok();
}

Status MachineList::AddWords(std::string_view words) {
  for (std::string_view name = PopWord(words); !name.empty(); name = PopWord(words)) {
    if (Status status = Add(name, 1); !status.ok()) return status;
  }
  return Status::Ok();
}

Status MachineList::AddLines(std::string_view text) {
  LineReader lines(text);
  while (std::optional<std::string_view> line = lines.Next()) {
    if (Status status = AddWords(*line); !status.ok()) return status;
  }
  return Status::Ok();
}

Status MachineList::AddPairs(std::string_view words) {
  for (std::string_view name = PopWord(words); !name.empty(); name = PopWord(words)) {
    const std::optional<uint32_t> slots = ParseWhole<uint32_t>(PopWord(words));
    if (!slots) return BadListError(name);
    if (Status status = Add(name, *slots); !status.ok()) return status;
  }
  return Status::Ok();
}

Result<std::vector<HostSpec>> MachineList::Finish() {
  if (hosts_.empty()) return InvalidArgument(source_ + " names no host, perhaps cut by a script");
  index_.clear();
  return std::move(hosts_);
}

}  // namespace hvd
