// The resources of this host, as a worker would see them: limits, memory, GPUs, disks, network,
// Python and its libraries. Says it line by line, "key=value", the facts that may be slow last:
// whoever reads may stop at any line. Runs as `hvdrun agent --examine`, a process that may block
// and be killed.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_HOST_INSPECTION_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_HOST_INSPECTION_H_

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// Writes to stdout; returns when everything is said. Processes that are asked (python, and one for
// the GPUs) have 8 s each.
void ExamineHere(const std::string& directory, const std::string& interpreter);
// The facts of GPUs alone, by NVIDIA's library, which may hang or die: `hvdrun agent
// --examine-gpus`.
void ExamineGpusHere();

// ---- pure parts

// The value of KillUserProcesses after these files of logind, in their order; empty: none of them
// has it.
std::string KillUserProcessesIn(const std::vector<std::string>& files);
// "8192 kB" of a field of /proc/meminfo in bytes; 0: it is not there.
uint64_t MeminfoBytes(std::string_view meminfo, std::string_view field);
// The facts that `hvdrun agent --examine-gpus` said, else with a "gpu.trouble".
std::vector<std::string> GpuFactsSaid(std::string_view said);
// The lines that the Python script of the examination said, else a "python.trouble" with the last
// thing that was said.
std::vector<std::string> PythonFacts(std::string_view said);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_HOST_INSPECTION_H_
