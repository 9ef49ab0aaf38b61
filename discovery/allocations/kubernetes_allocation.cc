#include "discovery/allocations/kubernetes_allocation.h"

#include <string>
#include <utility>

#include "configs/message_text.h"

namespace hvd {
namespace {

// By which the operator names its host file to the MPI of the image.
constexpr const char* kHostFiles[] = {"OMPI_MCA_orte_default_hostfile",
                                      "PRTE_MCA_prte_default_hostfile", "I_MPI_HYDRA_HOST_FILE",
                                      "HYDRA_HOST_FILE"};

}  // namespace

Result<std::optional<Allocation>> FindKubernetesAllocation(const AllocationFacts& facts) {
  // The variables of MPI alone may be a user's own, outside of Kubernetes.
  const bool in_pod = facts.Text("KUBERNETES_SERVICE_HOST") || facts.Text("K_MPI_JOB_ROLE");
  if (!in_pod) return std::optional<Allocation>();
  for (const char* variable : kHostFiles) {
    const std::optional<std::string> path = facts.Text(variable);
    if (!path) continue;
    const std::string shown = Printable(*path, kMaxShownPath) + " (" + variable + ")";
    const Result<std::string> text = facts.read_file(*path);
    if (!text.ok())
      return InvalidArgument("the operator's host file " + shown + " " + text.status().message());
    Result<std::vector<HostSpec>> hosts = ParseHostFile(*text, shown);
    if (!hosts.ok()) return hosts.status();
    Allocation allocation;
    allocation.name = "the host file " + *path + " of the operator";
    allocation.hosts = std::move(*hosts);
    allocation.slots_are = "one per slot of the operator";
    for (HostSpec& host : allocation.hosts) host.slots = host.slots.value_or(1);
    allocation.way_in.rsh_agent = facts.Text("OMPI_MCA_plm_rsh_agent").value_or("");
    return std::optional<Allocation>(std::move(allocation));
  }
  return std::optional<Allocation>();
}

}  // namespace hvd
