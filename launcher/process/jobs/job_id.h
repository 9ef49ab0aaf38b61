// The names of a job: its id (public: in environments, in the agent's command line) and its key
// (secret).
#ifndef HVD_LAUNCHER_PROCESS_JOBS_JOB_ID_H_
#define HVD_LAUNCHER_PROCESS_JOBS_JOB_ID_H_

#include <cstdint>
#include <optional>
#include <string>

namespace hvd {

// A new id of 16 hexadecimal digits.
std::string MakeJobId();
std::optional<uint64_t> ParseJobId(const std::string& id);

// The id of the agent of this host (an index), which distinguishes several agents of a job on one
// machine. That of host 0 is the job's own.
std::string AgentJobId(const std::string& job_id, uint32_t host);
// The host index of an agent's id; nothing if either id is invalid, or they are not of one job.
std::optional<uint32_t> HostOfAgent(const std::string& job_id, const std::string& agent_job_id);

// 32 random bytes as 64 hexadecimal digits.
std::string MakeJobKey();
// Compares in constant time.
bool SameKey(const std::string& a, const std::string& b);

// The abstract unix address of the calling process as agent of this job. Unique in a network
// namespace even across pid namespaces: it contains the job's id and random digits.
std::string MakeLinkAddress(const std::string& job_id);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_JOB_ID_H_
