// The hosts of pods that reach each other by SSH: of an MPIJob or TrainJob of Kubeflow, of a
// Volcano job with its plug-in for MPI, of Horovod's own chart. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_KUBERNETES_ALLOCATION_H_
#define HVD_DISCOVERY_ALLOCATIONS_KUBERNETES_ALLOCATION_H_

#include <optional>

#include "discovery/allocations/allocation.h"

namespace hvd {

// Nothing if no host file of the operator is set.
Result<std::optional<Allocation>> FindKubernetesAllocation(const AllocationFacts& facts);

// Volcano's plug-in for MPI lists its hosts in MPI_HOST, its plug-in svc those of each task in
// variables and files, the chart in a file; slots are one per host, or those of the chart's file.
// Of Volcano's tasks the only one counts whose name ends with "worker" and that this pod is not of.
Result<std::optional<Allocation>> FindOtherPodsAllocation(const AllocationFacts& facts);

// Whether a host of an operator's list is this pod, whose hostname is the first label of its name.
// With runLauncherAsWorker the launcher is one of them, without sshd, and is looked up before the
// name server knows it.
bool IsThisPod(const AllocationFacts& facts, const std::string& name, const std::string& hostname);

// Slots per host, from the operator's settings for the image's MPI, or from its host file, where
// all hosts have the same number: its discover_hosts.sh prints names only.
std::optional<uint32_t> SlotsOfOperator(const AllocationFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_KUBERNETES_ALLOCATION_H_
