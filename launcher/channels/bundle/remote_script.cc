#include "launcher/channels/bundle/remote_script.h"

#include "configs/message_text.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr std::string_view kWants = "wants ", kCannot = "cannot ", kSkips = "skips ";
constexpr size_t kMaxReason = 800;

// One line, from remote_install.sh.
constexpr std::string_view kScript =
#include "remote_install.inc"
    ;

const char* WordOf(BundleUse use) {
  switch (use) {
    case BundleUse::kAuto: return "auto";
    case BundleUse::kNever: return "never";
    case BundleUse::kAlways: return "always";
  }
  return "auto";
}

}  // namespace

std::string ShellWord(const std::string& word) {
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string RemoteAgentCommand(const RemoteAgent& agent) {
  std::string command = "exec sh -c " + ShellWord(std::string(kScript)) + " hvdrun";
  for (const std::string& word : {agent.executable, agent.job_id, agent.version, agent.build_id,
                                  agent.machine, std::string(WordOf(agent.bundle))})
    command += " " + ShellWord(word);
  for (const AgentOfNode& agent_there : agent.step)
    command += " " + ShellWord(agent_there.node + "=" + agent_there.job_id);
  return command;
}

std::string AgentGreeting(const std::string& job_id) { return "hvdrun-agent " + job_id + "\n"; }

std::optional<ScriptWants> ParseScriptWants(std::string_view line) {
  if (!line.starts_with(kWants)) return std::nullopt;
  line.remove_prefix(kWants.size());
  if (line == "gzip") return ScriptWants{Packing::kGzip};
  if (line == "tar") return ScriptWants{Packing::kTar};
  return std::nullopt;
}

std::optional<std::string> ParseScriptCannot(std::string_view line) {
  if (!line.starts_with(kCannot)) return std::nullopt;
  return Printable(line.substr(kCannot.size()), kMaxReason);
}

std::optional<std::string> ParseScriptSkips(std::string_view line) {
  if (!line.starts_with(kSkips)) return std::nullopt;
  return "hvdrun does not run " + Printable(line.substr(kSkips.size()), kMaxReason);
}

std::string BundleHeader(const Bundle& bundle) {
  return Format("\nhvdrun-bundle {} {}\n", bundle.bytes.size(), bundle.sha256);
}

}  // namespace hvd
