// The script that hvdrun has a shell on another host run: find this build of hvdrun there, ask for
// the bundle where there is none, and become the agent. Beside it, the lines that the script says
// and hears. Pure; bundle_source.h makes what is sent.
//
//   script                                hvdrun
//   hvdrun-agent JOB wants gzip  ------>           (or tar, where the host has no gzip)
//                                <------  a line break, a line "BYTES SHA256", so many bytes
//   hvdrun-agent JOB             ------>           what comes next is the agent's stream
//
// or, when the host cannot be used:  hvdrun-agent JOB cannot SENTENCE
// before any of these, perhaps:      hvdrun-agent JOB skips PATH, because REASON
//
// A hvdrun that is installed there is run only if nobody but the user and root could have put it
// there: they own it and all folders and links on the way to it, and nobody else may write there,
// but for the user's private group.
#ifndef HVD_LAUNCHER_CHANNELS_BUNDLE_REMOTE_SCRIPT_H_
#define HVD_LAUNCHER_CHANNELS_BUNDLE_REMOTE_SCRIPT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/choices.h"
#include "launcher/channels/bundle/bundle.h"

namespace hvd {

// A node of a step that starts the agents of several.
struct AgentOfNode {
  std::string node, job_id;
};

struct RemoteAgent {
  std::string executable;  // where hvdrun lies here, and perhaps there
  std::string job_id;      // its own; empty for a step
  std::string version;
  std::string build_id;
  std::string machine;  // as uname -m says
  BundleUse bundle = BundleUse::kAuto;
  std::vector<AgentOfNode> step;  // empty: this command is for one agent
};

// One simple command for any login shell; sh does the rest. Below 6 KiB beside the executable's
// path and the nodes of a step.
std::string RemoteAgentCommand(const RemoteAgent& agent);

// The last line before the agent's own bytes, with its line break.
std::string AgentGreeting(const std::string& job_id);

// The rest of a line of the script, after its greeting.
struct ScriptWants {
  Packing packing;
};
std::optional<ScriptWants> ParseScriptWants(std::string_view words);
// The sentence.
std::optional<std::string> ParseScriptCannot(std::string_view words);

// "hvdrun does not run PATH, because REASON"; the advice is always the same.
std::optional<std::string> ParseScriptSkips(std::string_view words);
inline constexpr const char* kSkipAdvice =
    "only the user and root may own that and write there: use chown or chmod go-w, or install "
    "hvdrun elsewhere";

// The header before the bytes of a bundle. The line break ends whatever was on its way already.
std::string BundleHeader(const Bundle& bundle);

// One word for any shell.
std::string ShellWord(const std::string& word);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_BUNDLE_REMOTE_SCRIPT_H_
