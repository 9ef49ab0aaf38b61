#include "launcher/channels/srun_command.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "discovery/allocations/slurm_nodes.h"
#include "launcher/channels/command_end.h"
#include "launcher/process/process_end.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

struct EndMeaning {
  const char* text;  // of srun or of the step's daemon
  const char* reason;
};

constexpr const char* kNodeFailure = "Node failure on";
constexpr const char* kTerminated =
    "Slurm ended the step, or somebody its agent: signal 15 (SIGTERM)";
constexpr size_t kMostNodes = 65536;

// The first match applies. Messages of Slurm since 20.11.
constexpr EndMeaning kEndsOfSteps[] = {
    {"DUE TO TIME LIMIT", "Slurm ended the step: time limit"},
    {"DUE TO PREEMPTION", "Slurm ended the step: preemption"},
    {"DUE TO NODE FAILURE", "Slurm ended the step: node failure"},
    {"DUE TO JOB REQUEUE", "Slurm ended the step: the job was requeued"},
    {"CANCELLED AT", "Slurm ended the step: it was cancelled"},
    {"Force Terminated", "Slurm ended the step: it was cancelled"},
};
// In a step with several nodes these concern one of them.
constexpr EndMeaning kEndsOnNodes[] = {
    {kNodeFailure, "Slurm ended the step: node failure"},
    {"oom", "Slurm ended the step: out of memory"},
};
// The reason may arrive after the end.
constexpr EndMeaning kAborted[] = {{"Job step aborted", "Slurm ended the step"}};
constexpr EndMeaning kRefusals[] = {
    {"Invalid job id", "Slurm starts no step there: the allocation is over"},
    {"Expired or invalid job", "Slurm starts no step there: the allocation is over"},
    {"Job/step already completing or completed",
     "Slurm starts no step there: the allocation is over"},
    {"Unable to contact slurm controller", "Slurm's controller does not answer"},
};

template <size_t N>
const char* MeaningOf(const EndMeaning (&meanings)[N], const std::string& printed) {
  for (const EndMeaning& meaning : meanings) {
    if (printed.find(meaning.text) != std::string::npos) return meaning.reason;
  }
  return nullptr;
}

std::vector<std::string> BeginCommand(const std::vector<std::string>& left_out,
                                      std::optional<uint32_t> component) {
  std::vector<std::string> command = {"env"};
  for (const std::string& name : left_out) command.insert(command.end(), {"-u", name});
  // Set as a variable: releases before 20.11 do not know the flag, and share nodes without it.
  command.insert(command.end(), {"SLURM_OVERLAP=1", "srun"});
  if (component) command.push_back(Format("--het-group={}", *component));
  return command;
}

bool Names(std::string_view list, const std::string& node) {
  const Result<std::vector<std::string>> nodes = ParseSlurmNodes(list, kMostNodes);
  return nodes.ok() && std::find(nodes->begin(), nodes->end(), node) != nodes->end();
}

// Interprets "Exited with exit code 137", "Killed"; nothing for a normal end.
std::optional<std::string> EndOfTask(std::string_view line) {
  constexpr std::string_view kExited = "Exited with exit code ";
  if (line == "Terminated") return kTerminated;
  if (line.find("Out Of Memory") != line.npos) return "Slurm ended the step: out of memory";
  if (!line.starts_with(kExited)) return "the agent was ended: " + LastOutput(std::string(line));
  line.remove_prefix(kExited.size());
  int code = 0;
  std::from_chars(line.data(), line.data() + line.size(), code);
  if (code == 0) return std::nullopt;
  if (code == kSignalBase + SIGTERM) return kTerminated;
  return code > 128 ? Format("the agent was ended by signal {}", code - 128)
                    : Format("the agent ended with exit code {}", code);
}

// Interprets a line of srun about the end of some tasks: "srun: error: n[1-2]: tasks 0-1: Killed".
std::optional<std::string> EndInLine(std::string_view line, const std::string& node) {
  constexpr std::string_view kSays = "srun: error: ";
  if (!line.starts_with(kSays)) return std::nullopt;
  line.remove_prefix(kSays.size());
  const std::string_view failure = kNodeFailure;
  if (line.starts_with(failure))
    return Names(line.substr(std::min(failure.size() + 1, line.size())), node)
               ? std::optional<std::string>("Slurm ended the step: node failure")
               : std::nullopt;
  const size_t tasks = line.find(": task");
  const size_t end = tasks == line.npos ? tasks : line.find(": ", tasks + 2);
  if (end == line.npos || !Names(line.substr(0, tasks), node)) return std::nullopt;
  return EndOfTask(line.substr(end + 2));
}

std::optional<std::string> EndOfNode(std::string_view printed, const std::string& node) {
  while (!printed.empty()) {
    const size_t end = std::min(printed.find('\n'), printed.size());
    if (std::optional<std::string> reason = EndInLine(printed.substr(0, end), node)) return reason;
    printed.remove_prefix(std::min(end + 1, printed.size()));
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> SrunCommand(const SrunNode& node, const std::vector<std::string>& left_out,
                                     const std::string& remote_command) {
  std::vector<std::string> command = BeginCommand(left_out, node.component);
  // Without --unbuffered, the node keeps bytes back until a line ends.
  command.insert(command.end(), {"--nodes=1", "--ntasks=1", "--ntasks-per-node=1",
                                 "--nodelist=" + node.name, "--cpu-bind=none", "--mpi=none",
                                 "--export=ALL", "--unbuffered", "sh", "-c", remote_command});
  return command;
}

// A failing node or an ending agent does not affect the others: the job, not Slurm, decides what
// that means.
std::vector<std::optional<uint32_t>> ShareSteps(const std::vector<std::optional<SrunNode>>& nodes,
                                                uint32_t most) {
  std::map<std::optional<uint32_t>, std::vector<size_t>> components;
  for (size_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node]) components[nodes[node]->component].push_back(node);
  }
  std::vector<std::optional<uint32_t>> step_of(nodes.size());
  size_t first = 0;
  for (const auto& [component, members] : components) {
    if (members.size() < 2) continue;
    const size_t steps = (members.size() + most - 1) / most;
    for (size_t i = 0; i < members.size(); ++i)
      step_of[members[i]] = static_cast<uint32_t>(first + i * steps / members.size());
    first += steps;
  }
  return step_of;
}

std::vector<std::string> SrunStepCommand(const std::vector<SrunNode>& nodes,
                                         const std::vector<std::string>& left_out,
                                         const std::string& remote_command) {
  std::vector<std::string> command =
      BeginCommand(left_out, nodes.empty() ? std::nullopt : nodes.front().component);
  const std::string count = std::to_string(nodes.size());
  std::string names;
  for (const SrunNode& node : nodes) names += (names.empty() ? "" : ",") + node.name;
  command.insert(command.end(),
                 {"--nodes=" + count, "--ntasks=" + count, "--ntasks-per-node=1",
                  "--nodelist=" + names, "--cpu-bind=none", "--mpi=none", "--export=ALL",
                  "--no-kill", "--kill-on-bad-exit=0", "--wait=0", "sh", "-c", remote_command});
  return command;
}

ChannelEnd ReadSrunEnd(const CommandEnd& end) {
  const ChannelStage stage = end.connected ? ChannelStage::kRunning : ChannelStage::kExec;
  if (WIFEXITED(end.wait_status) && WEXITSTATUS(end.wait_status) == 0 && end.connected) return {};
  if (const char* reason = MeaningOf(kEndsOfSteps, end.printed)) return {stage, reason};
  if (const char* reason = MeaningOf(kEndsOnNodes, end.printed)) return {stage, reason};
  if (const char* reason = MeaningOf(kAborted, end.printed)) return {stage, reason};
  if (end.connected && WIFEXITED(end.wait_status) &&
      WEXITSTATUS(end.wait_status) == kSignalBase + SIGTERM)
    return {stage, kTerminated};
  if (end.connected) return {stage, EndOfAgent(end)};
  if (const char* reason = MeaningOf(kRefusals, end.printed))
    return {stage, std::string(reason) + ": " + LastOutput(end.printed)};
  const std::string output = LastOutput(end.printed);
  return {stage, "srun " +
                     (WIFSIGNALED(end.wait_status)
                          ? Format("was ended by signal {}", WTERMSIG(end.wait_status))
                          : Format("ended with exit code {}", WEXITSTATUS(end.wait_status))) +
                     " before the agent said a word" + (output.empty() ? "" : ": " + output) +
                     "; --launcher ssh goes another way"};
}

std::optional<ChannelEnd> ParseSrunOutput(const std::string& printed, const std::string& node) {
  const std::optional<std::string> reason = EndOfNode(printed, node);
  if (!reason) return std::nullopt;
  const char* of_step = MeaningOf(kEndsOfSteps, printed);                 // says more
  if (of_step == nullptr && *reason == kTerminated) return std::nullopt;  // more may follow
  return ChannelEnd{ChannelStage::kRunning, of_step != nullptr ? of_step : *reason};
}

ChannelEnd ReadSrunStepEnd(const CommandEnd& end, const std::string& node) {
  if (!end.connected) return ReadSrunEnd(end);
  if (std::optional<ChannelEnd> read = ParseSrunOutput(end.printed, node)) return *read;
  if (const char* reason = MeaningOf(kEndsOfSteps, end.printed))
    return {ChannelStage::kRunning, reason};
  if (const char* reason = MeaningOf(kAborted, end.printed))
    return {ChannelStage::kRunning, reason};
  if (std::optional<std::string> reason = EndOfNode(end.printed, node))
    return {ChannelStage::kRunning, *reason};
  if (WIFSIGNALED(end.wait_status))
    return {ChannelStage::kRunning,
            Format("srun was ended by signal {}", WTERMSIG(end.wait_status))};
  return {};  // srun's exit code concerns other nodes
}

}  // namespace hvd
