#include "discovery/allocations/grid_engine_allocation.h"

#include <string>
#include <utility>

#include "configs/message_text.h"
#include "discovery/allocations/machine_list.h"
#include "discovery/words.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// "host slots queue processors"
Status AddLine(std::string_view line, MachineList& list) {
  const std::string_view whole = Trimmed(line);
  const std::string_view name = PopWord(line);
  if (name.empty()) return Status::Ok();
  const std::optional<uint32_t> slots = ParseWhole<uint32_t>(PopWord(line));
  return slots ? list.Add(name, *slots) : list.BadListError(whole);
}

}  // namespace

Result<std::optional<Allocation>> FindGridEngineAllocation(const AllocationFacts& facts) {
  const std::optional<std::string> path = facts.Text("PE_HOSTFILE");
  if (!path) return std::optional<Allocation>();
  const std::string source =
      "Grid Engine's file " + Printable(*path, kMaxShownPath) + " (PE_HOSTFILE)";
  const Result<std::string> text = facts.read_file(*path);
  if (!text.ok()) return InvalidArgument(source + " " + text.status().message());
  MachineList list(source);
  LineReader lines(*text);
  while (std::optional<std::string_view> line = lines.Next()) {
    if (Status status = AddLine(*line, list); !status.ok()) return status;
  }
  Result<std::vector<HostSpec>> hosts = list.Finish();
  if (!hosts.ok()) return hosts.status();
  Allocation allocation;
  allocation.name = "Grid Engine job " + facts.Text("JOB_ID").value_or("");
  allocation.hosts = std::move(*hosts);
  allocation.slots_are = "one per slot of the queue";
  return std::optional<Allocation>(std::move(allocation));
}

}  // namespace hvd
