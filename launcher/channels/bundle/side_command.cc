#include "launcher/channels/bundle/side_command.h"

#include "launcher/channels/bundle/remote_script.h"

namespace hvd {

std::string SideCommandLine(SideCommand side_command, const AgentPath& there,
                            const std::string& job_id) {
  const std::string agent = "exec " + ShellWord(there.hvdrun) + " agent ";
  if (side_command == SideCommand::kClear) return agent + "--clear " + ShellWord(job_id);
  return agent + "--resume " + ShellWord(job_id) + " " + ShellWord(there.resume_address);
}

std::string NoAgentText(const std::string& job_id) { return "hvdrun-nobody " + job_id; }

}  // namespace hvd
