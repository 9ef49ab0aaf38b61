#include "discovery/allocations/slurm_job.h"

#include <algorithm>
#include <utility>

#include "configs/message_text.h"
#include "discovery/allocations/slurm_nodes.h"
#include "discovery/host_range.h"
#include "discovery/words.h"

namespace hvd {
namespace {

// The value of "Name=value" in a record; "" if there is none.
std::string_view FieldOf(std::string_view record, std::string_view name) {
  for (std::string_view rest = record; !rest.empty();) {
    const std::string_view word = PopWord(rest);
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return word.substr(name.size() + 1);
    if (word.empty()) break;
  }
  return "";
}

bool IsOfJob(std::string_view record, std::string_view id) {
  return FieldOf(record, "JobId") == id || FieldOf(record, "HetJobId") == id;
}

// Whether the job has nodes to start anything on: not if it has ended or waits to be requeued.
bool HasNodes(std::string_view record) {
  const std::string_view state = FieldOf(record, "JobState");
  const std::string_view nodes = FieldOf(record, "NodeList");
  return (state == "RUNNING" || state == "SUSPENDED" || state == "RESIZING") && !nodes.empty() &&
         nodes != "(null)";
}

}  // namespace

std::string SlurmJobCommand(const std::string& id) {
  const bool number = !id.empty() && id.find_first_not_of("0123456789") == std::string::npos;
  return number && id.size() <= 20 ? "scontrol --oneliner show job " + id : "";
}

Result<std::vector<HostSpec>> ReadSlurmJob(std::string_view text, std::string_view id,
                                           const std::vector<HostSpec>& allocated) {
  std::vector<HostSpec> hosts;
  std::string state;
  LineReader lines(text);
  while (const auto line = lines.Next()) {
    if (!IsOfJob(*line, id)) continue;
    state = FieldOf(*line, "JobState");
    if (!HasNodes(*line)) continue;
    const std::string_view list = FieldOf(*line, "NodeList");
    Result<std::vector<std::string>> names = ParseSlurmNodes(list, kMaxHosts - hosts.size());
    if (!names.ok())
      return InvalidArgument("NodeList=" + Printable(std::string(list)) + " " +
                             names.status().message());
    for (std::string& name : *names) {
      const auto known = std::find_if(allocated.begin(), allocated.end(),
                                      [&](const HostSpec& spec) { return spec.name == name; });
      HostSpec host;
      if (!allocated.empty()) host = known == allocated.end() ? allocated.front() : *known;
      host.name = std::move(name);
      hosts.push_back(std::move(host));
    }
  }
  if (!hosts.empty()) return hosts;
  return InvalidArgument("it tells no nodes of job " + std::string(id) +
                         (state.empty() ? "" : ", which is " + Printable(state)));
}

}  // namespace hvd
