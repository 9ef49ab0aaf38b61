// The names of a job: its id (public: in environments, in the agent's command line) and its key
// (secret).
#ifndef HVD_LAUNCHER_PROCESS_JOBS_JOB_ID_H_
#define HVD_LAUNCHER_PROCESS_JOBS_JOB_ID_H_

#include <cstdint>
#include <optional>
#include <string>

namespace hvd {

// 16 hexadecimal digits, fresh.
std::string MakeJobId();
std::optional<uint64_t> ParseJobId(const std::string& id);

// The id under which the agent of this host (an index) keeps its part of the job apart from those
// of other agents on the same machine. That of host 0 is the job's own.
std::string AgentJobId(const std::string& job_id, uint32_t host);
// The host from the id; nothing when one of the two is no id, or they are not of one job.
std::optional<uint32_t> HostOfAgent(const std::string& job_id, const std::string& agent_job_id);

// 32 random bytes as 64 hexadecimal digits.
std::string MakeJobKey();
// Takes the same time wherever the first difference is.
bool SameKey(const std::string& a, const std::string& b);

// The abstract unix address of the calling process as agent of this job. Pid namespaces cannot make
// two agents of one network namespace collide: the id of the job and fresh random digits are part
// of it.
std::string MakeLinkAddress(const std::string& job_id);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_JOB_ID_H_
