#include "discovery/allocations/kubernetes_allocation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// The variables in which the MPI Operator passes its host file to the MPI of the image.
constexpr const char* kHostFiles[] = {"OMPI_MCA_orte_default_hostfile",
                                      "PRTE_MCA_prte_default_hostfile", "I_MPI_HYDRA_HOST_FILE",
                                      "HYDRA_HOST_FILE"};
constexpr const char* kSlots[] = {"OMPI_MCA_orte_set_default_slots", "I_MPI_PERHOST"};
constexpr const char* kFileOfOperator = "/etc/mpi/hostfile";  // unless a variable names another
constexpr const char* kFolderOfVolcano = "/etc/volcano/";
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

// Of Volcano's plug-in svc, in capitals: the task "mpi-worker" has VC_MPI_WORKER_HOSTS.
constexpr std::string_view kBeforeTask = "VC_", kAfterTask = "_HOSTS", kWorker = "WORKER";

std::string TaskOf(std::string_view variable) {
  if (variable.size() <= kBeforeTask.size() + kAfterTask.size()) return "";
  if (!variable.starts_with(kBeforeTask) || !variable.ends_with(kAfterTask)) return "";
  variable.remove_prefix(kBeforeTask.size());
  variable.remove_suffix(kAfterTask.size());
  return std::string(variable);
}

std::string Lowered(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

struct TaskHosts {
  std::string source;  // "the host file /etc/volcano/worker.host of Volcano"
  std::vector<HostSpec> hosts;
};

// The file follows when the job is scaled, the variables do not.
Result<TaskHosts> HostsOfTask(const AllocationFacts& facts, const std::string& task) {
  const std::string path = kFolderOfVolcano + Lowered(task) + ".host";
  if (const Result<std::string> text = facts.read_file(path); text.ok() && !text->empty()) {
    Result<std::vector<HostSpec>> hosts = ParseHostFile(*text, path);
    if (!hosts.ok()) return hosts.status();
    return TaskHosts{"the host file " + path + " of Volcano", std::move(*hosts)};
  }
  const std::string variable = std::string(kBeforeTask) + task + std::string(kAfterTask);
  const std::string shown = Printable(variable) + " of Volcano";
  Result<std::vector<HostSpec>> hosts = ParseHostList(facts.Text(variable.c_str()).value_or(""));
  if (!hosts.ok()) return InvalidArgument(shown + ": " + hosts.status().message());
  const std::string count_in = std::string(kBeforeTask) + task + "_NUM";
  const std::optional<std::string> count = facts.Text(count_in.c_str());
  if (count && ParseWhole<size_t>(*count) != hosts->size())
    return InvalidArgument(Format("{} of Volcano is {}, but {} names {}", Printable(count_in),
                                  Printable(*count), Printable(variable), hosts->size()));
  return TaskHosts{shown, std::move(*hosts)};
}

bool HasThisPod(const AllocationFacts& facts, const std::vector<HostSpec>& hosts) {
  const std::string hostname = facts.Text("HOSTNAME").value_or("");
  return std::ranges::any_of(hosts, [&](const HostSpec& host) {
    return host.name == hostname || IsThisPod(facts, host.name, hostname);
  });
}

// Of a job with workers of several kinds none is chosen.
Result<std::optional<Allocation>> FindVolcanoTask(const AllocationFacts& facts) {
  std::optional<TaskHosts> workers;
  if (!facts.variables) return std::optional<Allocation>();
  for (const std::string& variable : facts.variables()) {
    const std::string task = TaskOf(variable);
    if (!task.ends_with(kWorker) || !facts.Text(variable.c_str())) continue;
    Result<TaskHosts> found = HostsOfTask(facts, task);
    if (!found.ok()) return found.status();
    if (HasThisPod(facts, found->hosts)) continue;
    if (workers) return std::optional<Allocation>();
    workers = std::move(*found);
  }
  if (!workers) return std::optional<Allocation>();
  return std::optional<Allocation>(OfPods(workers->source, std::move(workers->hosts),
                                          "one per host; --slots-per-host says more"));
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
  Result<std::optional<Allocation>> task = FindVolcanoTask(facts);
  if (!task.ok() || *task) return task;
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
  std::string path = kFileOfOperator;
  for (const char* variable : kHostFiles) {
    if (const std::optional<std::string> named = facts.Text(variable)) {
      path = *named;
      break;
    }
  }
  const Result<std::string> text = facts.read_file(path);
  if (!text.ok()) return std::nullopt;
  const Result<std::vector<HostSpec>> hosts = ParseHostFile(*text, path);
  if (!hosts.ok() || hosts->empty()) return std::nullopt;
  const std::optional<uint32_t> slots = hosts->front().slots;
  const bool same =
      std::ranges::all_of(*hosts, [&](const HostSpec& host) { return host.slots == slots; });
  return same && slots.value_or(0) > 0 ? slots : std::nullopt;
}

}  // namespace hvd
