// Prints the resources of this host as a worker sees them: limits, memory, GPUs, disks, network,
// Python and its libraries, as lines "key=value". Slow facts come last, and the reader may stop at
// any line. Runs as `hvdrun agent --examine`, a process that may block and be killed.
#ifndef HVD_LAUNCHER_AGENT_INSPECTION_HOST_INSPECTION_H_
#define HVD_LAUNCHER_AGENT_INSPECTION_HOST_INSPECTION_H_

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// Writes to stdout; returns when done. Child processes (python, and one for the GPUs) have 8 s
// each.
void ExamineHere(const std::string& directory, const std::string& interpreter);
// The facts of GPUs only, by NVIDIA's library, which may hang or crash: `hvdrun agent
// --examine-gpus`.
void ExamineGpusHere();

// ---- pure parts

// The value of KillUserProcesses in these files of logind, of which later ones win; empty: not set.
std::string KillUserProcessesIn(const std::vector<std::string>& files);
// A field of /proc/meminfo ("8192 kB") in bytes; 0: absent.
uint64_t MeminfoBytes(std::string_view meminfo, std::string_view field);
// The facts in the output of `hvdrun agent --examine-gpus`; with "gpu.trouble" if incomplete.
std::vector<std::string> ParseGpuFacts(std::string_view printed);
// The lines of the examination's Python script, or "python.trouble" with the last line of the
// output.
std::vector<std::string> PythonFacts(std::string_view printed);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_INSPECTION_HOST_INSPECTION_H_
