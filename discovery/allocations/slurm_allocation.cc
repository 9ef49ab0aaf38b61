#include "discovery/allocations/slurm_allocation.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "configs/message_text.h"
#include "discovery/allocations/slurm_job.h"
#include "discovery/allocations/slurm_nodes.h"
#include "discovery/host_item.h"
#include "discovery/host_range.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// Steps not started by srun: the shell of sbatch, of an interactive salloc, and the like.
constexpr uint64_t kFirstSpecialStep = 0xfffffff0;

std::optional<uint64_t> Number(const std::optional<std::string>& text) {
  return ParseWhole<uint64_t>(text.value_or(""));
}

}  // namespace

std::optional<SlurmStep> ReadSlurmStep(
    const std::function<std::optional<std::string>(const char* name)>& env) {
  std::optional<uint64_t> id = Number(env("SLURM_STEP_ID"));
  if (!id) id = Number(env("SLURM_STEPID"));
  const std::optional<std::string> task = env("SLURM_PROCID");
  if (!id || *id >= kFirstSpecialStep || !task) return std::nullopt;
  SlurmStep step;
  step.task = *task;
  step.tasks = Number(env("SLURM_STEP_NUM_TASKS")).value_or(1);
  step.nodes = Number(env("SLURM_STEP_NUM_NODES")).value_or(1);
  step.interactive = env("SLURM_PTY_PORT").has_value() && *task == "0";
  return step;
}

namespace {

using Env = std::function<std::optional<std::string>(const char* name)>;

constexpr uint32_t kMostComponents = 1024;

struct Variable {
  std::string name, value;
};

// The variables of one component of a heterogeneous job, or of a plain job.
class Component {
 public:
  Component(const Env& env, std::string suffix) : env_(env), suffix_(std::move(suffix)) {}

  // The first of these that is set and not empty.
  std::optional<Variable> First(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      std::string whole = name + suffix_;
      std::optional<std::string> value = env_(whole.c_str());
      if (value && !value->empty()) return Variable{std::move(whole), std::move(*value)};
    }
    return std::nullopt;
  }
  bool Has(const char* name) const { return First({name}).has_value(); }
  const std::string& suffix() const { return suffix_; }

 private:
  const Env& env_;
  const std::string suffix_;
};

Status Cut(const Variable& variable, const std::string& why) {
  return InvalidArgument("Slurm's variable " + variable.name + "=" + Printable(variable.value) +
                         " " + why + ", perhaps cut by a script");
}

Result<std::vector<std::string>> NodesOf(const Component& component) {
  const std::optional<Variable> list = component.First({"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (!list) {
    return InvalidArgument("SLURM_JOB_ID is set and SLURM_JOB_NODELIST" + component.suffix() +
                           " is not, so the hosts of this Slurm job are not known");
  }
  Result<std::vector<std::string>> names = ParseSlurmNodes(list->value, kMaxHosts);
  if (!names.ok()) return Cut(*list, names.status().message());
  return names;
}

// What a slot stands for, and the number of slots of each node.
struct Slots {
  std::string_view slots_are;
  std::vector<uint32_t> counts;
};

std::optional<Slots> AllEqual(std::string_view slots_are, std::optional<uint32_t> count,
                              size_t nodes) {
  if (!count || *count == 0) return std::nullopt;
  return Slots{slots_are, std::vector<uint32_t>(nodes, *count)};
}

bool TasksWereAsked(const Component& component, const std::optional<SlurmStep>& step) {
  // srun --pty sets the number of tasks even if it was not given: one per node is the shell.
  if (step) return step->tasks > step->nodes;
  return component.Has("SLURM_NTASKS") || component.Has("SLURM_NTASKS_PER_NODE") ||
         component.Has("SLURM_NPROCS");
}

Result<Slots> TaskSlots(const Component& component, size_t nodes) {
  const std::optional<Variable> list = component.First({"SLURM_TASKS_PER_NODE"});
  if (list) {
    std::optional<std::vector<uint32_t>> counts = ParseCounts(list->value, nodes);
    if (counts) return Slots{"one per task", std::move(*counts)};
    return Cut(*list, Format("does not tell the tasks of each of the {} nodes", nodes));
  }
  const std::optional<Variable> each = component.First({"SLURM_NTASKS_PER_NODE"});
  if (!each) {
    return InvalidArgument("SLURM_NTASKS is set and SLURM_TASKS_PER_NODE" + component.suffix() +
                           " is not, so the tasks of each node of this Slurm job are not known");
  }
  std::optional<Slots> slots = AllEqual("one per task", ParseWhole<uint32_t>(each->value), nodes);
  if (slots) return std::move(*slots);
  return Cut(*each, "is no number of tasks");
}

// Sums "4", "a100:4", "a100:2,v100:2", "a100:4(S:0-1)".
std::optional<uint32_t> CountGpus(std::string_view text) {
  uint64_t sum = 0;
  while (!text.empty()) {
    std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    entry = entry.substr(0, entry.find('('));
    const size_t colon = entry.rfind(':');
    if (colon != std::string_view::npos) entry.remove_prefix(colon + 1);
    const std::optional<uint32_t> count = ParseWhole<uint32_t>(entry);
    if (!count) return std::nullopt;
    sum += *count;
  }
  if (sum > kMaxSlots) return std::nullopt;
  return static_cast<uint32_t>(sum);
}

// The number requested per node, then for the job, then this node's, which --gres gives to all
// nodes alike.
std::optional<Slots> GpuSlots(const Component& component, size_t nodes) {
  if (const auto each = component.First({"SLURM_GPUS_PER_NODE"}))
    return AllEqual("one per GPU", CountGpus(each->value), nodes);
  if (const auto all = component.First({"SLURM_GPUS"})) {
    const std::optional<uint32_t> count = CountGpus(all->value);
    if (count && *count % nodes == 0)
      return AllEqual("one per GPU", static_cast<uint32_t>(*count / nodes), nodes);
  }
  if (const auto here = component.First({"SLURM_GPUS_ON_NODE"}))
    return AllEqual("one per GPU", CountGpus(here->value), nodes);
  return std::nullopt;
}

Result<Slots> CpuSlots(const Component& component, size_t nodes) {
  const std::optional<Variable> cpus = component.First({"SLURM_JOB_CPUS_PER_NODE"});
  if (!cpus) {
    return InvalidArgument("neither tasks nor GPUs were asked for, and SLURM_JOB_CPUS_PER_NODE" +
                           component.suffix() +
                           " is not set, so the slots of this Slurm job are "
                           "not known");
  }
  std::optional<std::vector<uint32_t>> counts = ParseCounts(cpus->value, nodes);
  if (!counts) {
    return Cut(*cpus, Format("does not tell the CPUs of each of the {} nodes", nodes));
  }
  const std::optional<Variable> per_task = component.First({"SLURM_CPUS_PER_TASK"});
  const uint32_t share =
      std::max(1U, per_task ? ParseWhole<uint32_t>(per_task->value).value_or(1) : 1U);
  for (uint32_t& count : *counts) count = std::max(1U, count / share);
  return Slots{"one per CPU", std::move(*counts)};
}

Result<Slots> SlotsOf(const Component& component, size_t nodes,
                      const std::optional<SlurmStep>& step) {
  if (TasksWereAsked(component, step)) {
    Result<Slots> tasks = TaskSlots(component, nodes);
    if (tasks.ok()) {
      // One task per node is how scripts request one launcher there, not one rank.
      const bool one_each =
          std::ranges::all_of(tasks->counts, [](uint32_t count) { return count == 1; });
      std::optional<Slots> gpus = one_each ? GpuSlots(component, nodes) : std::nullopt;
      if (gpus && gpus->counts.front() > 1) return std::move(*gpus);
    }
    // Inside a step the list is that of the step, which may have fewer nodes than the job.
    if (tasks.ok() || !step) return tasks;
  }
  if (std::optional<Slots> gpus = GpuSlots(component, nodes)) return std::move(*gpus);
  return CpuSlots(component, nodes);
}

Status AddComponent(const Component& component, const std::optional<SlurmStep>& step,
                    Allocation& allocation) {
  Result<std::vector<std::string>> nodes = NodesOf(component);
  if (!nodes.ok()) return nodes.status();
  if (nodes->size() + allocation.hosts.size() > kMaxHosts) {
    return InvalidArgument(
        Format("this Slurm job has more than the {} hosts that a job may have", kMaxHosts));
  }
  Result<Slots> slots = SlotsOf(component, nodes->size(), step);
  if (!slots.ok()) return slots.status();
  allocation.slots_are = slots->slots_are;
  for (size_t i = 0; i < nodes->size(); ++i) {
    const uint32_t count = slots->counts[i];
    if (count > kMaxSlots) {
      return InvalidArgument(
          Format("Slurm gives the node {} {} slots, more than the {} that a host may have",
                 Printable((*nodes)[i]), count, kMaxSlots));
    }
    HostSpec host;
    host.name = (*nodes)[i];
    host.slots = count;
    if (count > 0) allocation.hosts.push_back(std::move(host));
  }
  return Status::Ok();
}

// The number of components of a heterogeneous job; 0: it is a plain one.
Result<uint32_t> ComponentsOf(const Env& env) {
  for (const char* name : {"SLURM_HET_SIZE", "SLURM_PACK_SIZE"}) {
    const std::optional<std::string> text = env(name);
    if (!text || text->empty()) continue;
    const std::optional<uint32_t> count = ParseWhole<uint32_t>(*text);
    if (count && *count >= 1 && *count <= kMostComponents) return *count;
    return Cut({name, *text}, "is no number of components");
  }
  return 0U;
}

std::string Suffix(const Env& env, uint32_t component) {
  const char* group = env("SLURM_HET_SIZE") ? "_HET_GROUP_" : "_PACK_GROUP_";
  return group + std::to_string(component);
}

std::string JobName(const Env& env, const std::string& id) {
  const std::optional<std::string> array = env("SLURM_ARRAY_JOB_ID");
  const std::optional<std::string> task = env("SLURM_ARRAY_TASK_ID");
  return "Slurm job " + (array && task ? *array + "_" + *task : id);
}

}  // namespace

Result<std::optional<Allocation>> FindSlurmAllocation(const AllocationFacts& facts) {
  std::optional<std::string> id = facts.env("SLURM_JOB_ID");
  if (!id || id->empty()) id = facts.env("SLURM_JOBID");
  if (!id || id->empty()) return std::optional<Allocation>();
  Allocation allocation;
  allocation.name = JobName(facts.env, *id);
  const std::optional<SlurmStep> step = ReadSlurmStep(facts.env);
  Result<uint32_t> components = ComponentsOf(facts.env);
  if (!components.ok()) return components.status();
  for (uint32_t i = 0; i < std::max(*components, 1U); ++i) {
    const Component component(facts.env, *components == 0 ? "" : Suffix(facts.env, i));
    if (Status status = AddComponent(component, step, allocation); !status.ok()) return status;
  }
  if (allocation.hosts.empty())
    return InvalidArgument(Printable(allocation.name) + " gives no node a slot");
  if (facts.has_program("srun")) allocation.access.launcher = RemoteLauncher::kSrun;
  allocation.id = *id;
  if (facts.has_program("scontrol")) allocation.command = SlurmJobCommand(*id);
  return std::optional<Allocation>(std::move(allocation));
}

std::optional<uint32_t> SlurmComponentOf(const Env& env, const std::string& host) {
  const Result<uint32_t> components = ComponentsOf(env);
  if (!components.ok()) return std::nullopt;
  for (uint32_t i = 0; i < *components; ++i) {
    const Result<std::vector<std::string>> nodes = NodesOf(Component(env, Suffix(env, i)));
    if (nodes.ok() && std::find(nodes->begin(), nodes->end(), host) != nodes->end()) return i;
  }
  return std::nullopt;
}

bool SrunInherits(const std::string& name) {
  constexpr std::array kOfTheJob = {
      "SLURM_CONF",      "SLURM_CONF_SERVER",    "SLURM_JOB_ID", "SLURM_JOBID",
      "SLURM_CLUSTERS",  "SLURM_CLUSTER_NAME",   "SLURM_JWT",    "SLURM_HET_SIZE",
      "SLURM_PACK_SIZE", "SLURM_WORKING_CLUSTER"};
  if (!name.starts_with("SLURM_") && !name.starts_with("SRUN_")) return true;
  if (name.starts_with("SLURM_JOB_ID_") || name.starts_with("SLURM_JOB_PARTITION")) return true;
  return std::find(kOfTheJob.begin(), kOfTheJob.end(), name) != kOfTheJob.end();
}

}  // namespace hvd
