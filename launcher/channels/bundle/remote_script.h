// The script that a shell on another host runs for hvdrun: finds this build of hvdrun there,
// requests the bundle if it is missing, and execs the agent; and the lines that script and hvdrun
// exchange. Pure; bundle_source.h builds the bundle.
//
//   script                                hvdrun
//   hvdrun-agent JOB wants gzip  ------>           (or tar, where the host has no gzip)
//                                <------  a line break, a line "BYTES SHA256", so many bytes
//   hvdrun-agent JOB             ------>           what comes next is the agent's stream
//
// or, when the host cannot be used:  hvdrun-agent JOB cannot SENTENCE
// before any of these, perhaps:      hvdrun-agent JOB skips PATH, because REASON
//
// An hvdrun installed there is run only if no one but the user and root could have placed it: they
// own it and all folders and links on its path, and no one else may write there, except the user's
// private group.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_REMOTE_SCRIPT_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_REMOTE_SCRIPT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/choices.h"
#include "launcher/channels/bundle/bundle.h"

namespace hvd {

// A node of a step that starts several agents.
struct AgentOfNode {
  std::string node, job_id;
};

struct RemoteAgent {
  std::string executable;  // path of hvdrun here, and perhaps there
  std::string job_id;      // its own; empty for a step
  std::string version;
  std::string build_id;
  std::string machine;  // from uname -m
  BundleUse bundle = BundleUse::kAuto;
  std::vector<AgentOfNode> step;  // empty: this command is for one agent
};

// One simple command that any login shell parses; it runs sh. Below 6 KiB plus the executable's
// path and the nodes of a step.
std::string RemoteAgentCommand(const RemoteAgent& agent);

// The last line before the agent's own bytes, including the line break.
std::string AgentGreeting(const std::string& job_id);

// The rest of a line of the script, after its greeting.
struct ScriptWants {
  Packing packing;
};
std::optional<ScriptWants> ParseScriptWants(std::string_view line);
// The sentence.
std::optional<std::string> ParseScriptCannot(std::string_view line);

// "hvdrun does not run PATH, because REASON"; the advice is always the same.
std::optional<std::string> ParseScriptSkips(std::string_view line);
inline constexpr const char* kSkipAdvice =
    "only the user and root may own that and write there: use chown or chmod go-w, or install "
    "hvdrun elsewhere";

// The header of a bundle. Its leading line break ends any partial line already sent.
std::string BundleHeader(const Bundle& bundle);

// Quotes a word for any shell.
std::string ShellWord(const std::string& word);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_REMOTE_SCRIPT_H_
