#include "discovery/allocations/kubernetes_allocation.h"

#include <string>
#include <utility>

#include "configs/message_text.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// The variables in which the MPI Operator passes its host file to the MPI of the image.
constexpr const char* kHostFiles[] = {"OMPI_MCA_orte_default_hostfile",
                                      "PRTE_MCA_prte_default_hostfile", "I_MPI_HYDRA_HOST_FILE",
                                      "HYDRA_HOST_FILE"};
constexpr const char* kSlots[] = {"OMPI_MCA_orte_set_default_slots", "I_MPI_PERHOST"};
constexpr const char* kFileOfChart = "/horovod/generated/hostfile";

// The variables of MPI alone may be set by a user outside of Kubernetes.
bool InPod(const AllocationFacts& facts) {
  return facts.Text("KUBERNETES_SERVICE_HOST") || facts.Text("K_MPI_JOB_ROLE");
}

Allocation OfPods(std::string name, std::vector<HostSpec> hosts, std::string_view slots_are) {
  Allocation allocation;
  allocation.name = std::move(name);
  allocation.hosts = std::move(hosts);
  allocation.slots_are = slots_are;
  for (HostSpec& host : allocation.hosts) host.slots = host.slots.value_or(1);
  return allocation;
}

}  // namespace

Result<std::optional<Allocation>> FindKubernetesAllocation(const AllocationFacts& facts) {
  if (!InPod(facts)) return std::optional<Allocation>();
  for (const char* variable : kHostFiles) {
    const std::optional<std::string> path = facts.Text(variable);
    if (!path) continue;
    const std::string shown = Printable(*path, kMaxShownPath) + " (" + variable + ")";
    const Result<std::string> text = facts.read_file(*path);
    if (!text.ok())
      return InvalidArgument("the operator's host file " + shown + " " + text.status().message());
    Result<std::vector<HostSpec>> hosts = ParseHostFile(*text, shown);
    if (!hosts.ok()) return hosts.status();
    Allocation allocation = OfPods("the host file " + *path + " of the operator", std::move(*hosts),
                                   "one per slot of the operator");
    allocation.access.rsh_agent = facts.Text("OMPI_MCA_plm_rsh_agent").value_or("");
    return std::optional<Allocation>(std::move(allocation));
  }
  return std::optional<Allocation>();
}

Result<std::optional<Allocation>> FindOtherPodsAllocation(const AllocationFacts& facts) {
  if (!InPod(facts)) return std::optional<Allocation>();
  if (const std::optional<std::string> names = facts.Text("MPI_HOST")) {
    Result<std::vector<HostSpec>> hosts = ParseHostList(*names);
    if (!hosts.ok()) return InvalidArgument("MPI_HOST of Volcano: " + hosts.status().message());
    return std::optional<Allocation>(OfPods("MPI_HOST of Volcano", std::move(*hosts),
                                            "one per host; --slots-per-host says more"));
  }
  const Result<std::string> text = facts.read_file(kFileOfChart);
  if (!text.ok() || text->empty()) return std::optional<Allocation>();
  Result<std::vector<HostSpec>> hosts = ParseHostFile(*text, kFileOfChart);
  if (!hosts.ok()) return hosts.status();
  return std::optional<Allocation>(OfPods(std::string("the host file ") + kFileOfChart,
                                          std::move(*hosts), "one per slot of the chart"));
}

bool IsThisPod(const AllocationFacts& facts, const std::string& name, const std::string& hostname) {
  return InPod(facts) && !hostname.empty() && name.starts_with(hostname + ".");
}

std::optional<uint32_t> SlotsOfOperator(const AllocationFacts& facts) {
  if (!InPod(facts)) return std::nullopt;
  for (const char* variable : kSlots) {
    const auto slots = ParseWhole<uint32_t>(facts.Text(variable).value_or(""));
    if (slots && *slots > 0) return slots;
  }
  return std::nullopt;
}

}  // namespace hvd
